"""A claim: one thing that a verifier has to judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from app.core.model.anchors import ClaimedStatus

ClaimKind = Literal["item", "sentence", "digest", "dropped", "replaced", "anchor", "part", "cut"]
"""``part``: a sentence of an item that was not supported as a whole. ``cut``: a statement that code cut for a value."""


DIGEST_FIELD: Final = "segments"
"""The field of a claim about the digest of a stretch."""


ANCHOR_FIELD: Final = "anchors"
"""The field of a claim about an anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One thing to judge."""

    n: int
    """The number of the claim. It is unique in its state version, even if several calls share the claims."""
    kind: ClaimKind
    field: str
    text: str
    """The exact text of the entry, sentence or digest that is judged. A verdict counts only while this text stands."""
    target: str
    """What the claim is about: the id of the entry; for a sentence, of its narrative; for a part, of its item; for a
    digest, of its stretch; for an anchor, its own id; for a cut, the text that is left, empty if none is."""
    seqs: tuple[int, ...] = ()
    """The messages that the judged text names as its sources; for a digest the first and the last of its stretch."""
    successor_id: str | None = None
    """For a replaced entry, the id of the entry that took its place; ``None``: code cut the new text."""
    successor_text: str = ""
    """For a replaced entry, the text that took its place."""
    claimed_status: ClaimedStatus | None = None
    """For an anchor, the new status that is claimed; the last of ``seqs`` is the message that shows it."""
    text_left: str = ""
    """For a cut, what code left of the text."""
    replaces: tuple[str, ...] = ()
    """For a cut, the entries that the text was to replace."""
    place: int = 0
    """For a cut in a narrative, the number of remaining sentences before it."""

    @property
    def gives_up(self) -> bool:
        """Whether the claim is that an entry may go: the summarizer dropped or replaced it."""
        return self.kind in {"dropped", "replaced"}

    @property
    def waits_for_cut(self) -> bool:
        """Whether an entry was given up for a text that code then cut, so that nothing stands in its place."""
        return self.kind == "replaced" and self.successor_id is None

    @property
    def names_no_sources(self) -> bool:
        """Whether the claim is a sentence of a narrative, which does not name the messages on which it rests."""
        return self.kind == "sentence" or (self.kind == "cut" and not self.seqs)

    @property
    def statement(self) -> str:
        """What the verifier reads."""
        if self.gives_up:
            return self.given_up()
        if self.claimed_status is not None:
            return f"What #{self.seqs[0]} says ({self.text}) {_STATUS_WORDS[self.claimed_status].format(self.seqs[-1])}"
        if self.kind == "part":
            return f"Alone, without what stood beside it, this is clear and true: {self.text}"
        return self.text

    def given_up(self, successor: str | None = None) -> str:
        """What the verifier reads about an entry that may go.

        Args:
            successor: The name of the text that took its place; ``None``: that text is written out in full.
        """
        entry = f"{self.target} ({self.text})" if self.text else self.target
        if self.kind == "dropped":
            return f"{entry} may go, as untrue, settled or useless now"
        replacement_text = (
            f"{self.successor_id} ({self.successor_text})" if self.successor_id else f'"{self.successor_text}"'
        )
        return f"{entry} may go, as {successor or replacement_text} takes its place"


_STATUS_WORDS: Final[Mapping[ClaimedStatus, str]] = {
    "resolved": "is answered, done or settled by #{}",
    "superseded": "no longer holds because of #{}",
    "withdrawn": "promises, decides, asks, states and corrects nothing that matters later",
}
