"""Writes anchors into the state block: a line each, which cannot close the block or imitate a marker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

from app.core.model.anchors import AnchorType, FoundAnchor, Speaker
from app.core.text.escaping import escape_block, without_unseen
from app.core.text.memo import memoized
from app.core.text.message_escaping import escape_arrows
from app.core.text.patterns import compiled
from app.core.text.relative import date_note
from app.core.text.speakers import short_name
from app.core.text.token_counts import Estimator, estimate_text, tokens_of

ANCHORS_TAG: Final = "anchors"
ANCHORS_MARKER: Final = "[anchors →L3:anchors]"
"""The marker for the anchors for which there was no room; it expands to the full list."""

FRAME_TOKENS: Final = 24
"""The tokens of the element's own lines and the marker, rounded up."""

_LINE: Final = compiled(r"^- [a-z_]+ #(\d+)(?: \([^()（）\n]+\))?(?: ?[(（][^()（）\n]{1,60}[)）])?: ", re.MULTILINE)
"""An anchor's line; lines of layouts that were stored long ago do not name the speaker."""


def escape_served(text: str) -> str:
    r"""Escape a text for the block: no bracket begins one of our tags, no arrow is that of a marker (``\u2192``).

    JSON keeps its value, but for what no person sees.
    """
    return without_unseen(escape_arrows(escape_block(text)))


def anchor_line(
    type_: AnchorType,
    seq: int,
    content: str,
    speaker: Speaker = "user",
    *,
    pasted: bool = False,
    said_at: datetime | None = None,
    said_by: str = "",
) -> str:
    """One line: type, position, speaker and the verbatim content; line breaks in it become spaces.

    The speaker's name in the message follows the role, since a name alone could read like another role.

    If the content has a time that depends on the day on which it was said ("tomorrow"), that day is put before it.
    """
    # The same moment is another day on another clock: so the moment itself is no key.
    source = f"pasted by {speaker}" if pasted else speaker
    return _line(type_, seq, content, source, said_at.date() if said_at else None, said_by)


@memoized()
def _line(type_: AnchorType, seq: int, content: str, source: str, day: date | None, said_by: str) -> str:
    if name := short_name(said_by):
        source += f" {escape_served(name)}"
    day_note = date_note(day, content) if day else ""
    return f"- {type_} #{seq} ({source}){day_note}: {escape_served(' '.join(content.split()))}"


def line_tokens(line: str, estimator: Estimator = "script") -> int:
    """The tokens of an anchor's line in the block."""
    line = f"\n{line}"
    return tokens_of(estimate_text(line), len(line.encode()), estimator) + 1  # the seam between two lines


def line_of(anchor: FoundAnchor) -> str:
    """The line of an anchor."""
    return anchor_line(
        anchor.type,
        anchor.seq,
        anchor.content,
        anchor.speaker,
        pasted=anchor.pasted,
        said_at=anchor.said_at,
        said_by=anchor.said_by,
    )


def anchors_element(anchors: Sequence[FoundAnchor], *, behind_marker: int) -> str:
    """The ``<anchors>`` element; empty if there is nothing to serve."""
    lines = [line_of(anchor) for anchor in anchors]
    if behind_marker and not lines:
        return ANCHORS_MARKER
    if behind_marker:
        lines.append(ANCHORS_MARKER)
    return "\n".join([f"<{ANCHORS_TAG}>", *lines, f"</{ANCHORS_TAG}>"]) if lines else ""


def seqs_in(element: str) -> tuple[int, ...]:
    """The positions of the anchors that a rendered element shows, each once, in order."""
    return tuple(sorted({int(found.group(1)) for found in _LINE.finditer(element)}))
