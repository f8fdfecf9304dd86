"""Records of what was changed in a summary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from app.core.model.redaction import redact

RepairReason = Literal[
    "novel_value",
    "borrowed_value",
    "order",
    "narrative_line",
    "set_aside",
    "kept",
    "date_added",
    "passage_named",
    "value_restored",
    "shortened",
    "misplaced_quote",
    "contradicted",
    "not_stated",
    "dropped",
    "supported",
]
"""Why a text was changed.

``novel_value``: it states a value that was not shown. ``borrowed_value``: its value stands elsewhere than in its
sources; the text is left as it is. ``order``: it gives the reader an order that no person asked for.
``narrative_line``: less than half of a narrative held, or none was written though there was one before, and the newest
entries stand in its place. ``set_aside``: an entry that the model gave up without a proof is kept, in doubt; or such an
anchor (``field`` is ``anchors``) is served after the others. ``kept``: an entry that the model gave up stays as it is,
since a user set it or an active anchor says the same. ``date_added``: a day was put after a word such as "yesterday".
``passage_named``: the id of a kept passage, which no reader sees, was replaced by the number of its message.
``value_restored``: a sentence was added whose value would otherwise no longer be served. ``shortened``: sentences were
taken from a narrative, since the state would have exceeded its cap.

In a state that earlier checks made: ``misplaced_quote``: they had put a sentence of a message in the place of an item;
it is set aside, or removed if it is not a statement. There ``narrative_line`` means that the newest entries stand in
place of a stale narrative, or after a narrative that lost sentences.

By a verifier: ``contradicted``: a quoted message says something else; the text is removed, or an entry that had wrongly
been given up comes back. ``not_stated``: nothing that was shown states it; the text is left as it is, in doubt. If some
of its sentences are supported, only the others are in doubt, as an entry of their own.
``dropped``: an entry that the model gave up is removed, since the messages show that it is untrue, settled or useless.
``supported``: a statement that code had cut, since it did not find a value of it, comes back: messages show where the
value is from.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The place where code cut a statement because of a value that it did not find, so that it can be put back."""

    place: int = 0
    """For a sentence of a narrative, the number of remaining sentences before it."""
    from_seqs: tuple[int, ...] = ()
    """The messages that an item names as its sources."""
    replaces: tuple[str, ...] = ()
    """The entries that an item was to replace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One change of a summary by code, or by the model when it was asked again."""

    field: str
    reason: RepairReason
    before: str
    """The text as the model wrote it; empty for what was added."""
    after: str | None
    """The text that stands there now; ``None``: the text was removed."""
    entry_id: str | None = None
    """The entry that the text became, or that the repair is about; ``None`` if there is no such entry."""
    cut: Cut | None = None
    """Details of a cut that was made because of a value; ``None``: a verifier is not asked about it."""

    def redacted(self) -> Repair:
        """This repair without secrets, as it is stored."""
        return replace(self, before=redact(self.before), after=None if self.after is None else redact(self.after))

    def blanked(self) -> Repair:
        """This repair without its texts, for when a message was erased that they may quote."""
        return replace(self, before="", after=None if self.after is None else "", cut=None)
