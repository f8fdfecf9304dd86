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
sources; the text is left as it is. ``order``: it orders the reader about, and no person asked for that.
``narrative_line``: less than half of a narrative held, and the newest entries stand in its place. ``set_aside``: an
entry that the model gave up without a proof is kept, in doubt; an anchor (``field`` is ``anchors``), served after the
others. ``kept``: such a one stays as it is, since a user set it, or an active anchor says what the entry does.
``date_added``: a day was put after a word such as "yesterday". ``passage_named``: the id of a kept passage, which no
reader sees, became the number of its message. ``value_restored``: a sentence whose value would not have been served any
more was added. ``shortened``: a narrative lost sentences, since the state would have outweighed its cap.

In a state that earlier checks made: ``misplaced_quote``: they had put a sentence of a message in the place of an item;
it is set aside, or goes where it is no statement. There ``narrative_line`` says that the newest entries are told in
place of a stale narrative, or after one of which sentences are gone.

By a verifier: ``contradicted``: a message says otherwise, and was quoted; the text goes, or an entry that had wrongly
been given up comes back. ``not_stated``: nothing that was shown states it; the text is left as it is, in doubt, or only
those of its sentences that are not supported by themselves, as an entry of their own.
``dropped``: an entry that the model gave up goes, since the messages show that it is untrue, settled or useless.
``supported``: what code had cut for a value that it did not find comes back, since messages show where that is from.
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
    """The text that stands there now; ``None``: nothing does."""
    entry_id: str | None = None
    """The entry that the text became, or that the repair is about; ``None`` if it became none."""
    cut: Cut | None = None
    """Details of a cut because of a value; ``None``: a verifier is not asked about it."""

    def redacted(self) -> Repair:
        """This repair without secrets, as it is stored."""
        return replace(self, before=redact(self.before), after=None if self.after is None else redact(self.after))

    def blanked(self) -> Repair:
        """This repair without its texts, once a message was erased that they may tell of; that there was one stays."""
        return replace(self, before="", after=None if self.after is None else "", cut=None)
