"""Scores a compaction: probes that could be answered before are asked again in the context that is served now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.continuity.answering import Answer, answer, is_current
from app.core.continuity.probes import Probe, probes_of
from app.core.continuity.statements import (
    Context,
    StatementPool,
    block_statements,
    message_statements,
    newest_messages,
    sampled_messages,
    stored_block_statements,
)
from app.core.model.anchors import FoundAnchor
from app.core.model.continuity import Answered, Continuity, ProbeKind
from app.core.model.conversation import Layout, Message
from app.core.reading.cues import DELIGHT, DISTRESS, FRUSTRATION, INFORMAL, POLITE
from app.core.reading.labels import PHRASES
from app.core.text.language import detect, differs
from app.core.validation.asking import MAX_ADDED_ITEMS

_MIN_MESSAGES_OF_MOOD: Final = 2  # a mood counts if it is recognised in so many messages
_MAX_CHARACTERS: Final = 6_000
_MOODS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (FRUSTRATION, "frustrated"),
    (DISTRESS, "upset"),
    (DELIGHT, "friendly"),
    (POLITE, "polite"),
    (INFORMAL, "informal"),
)
"""The pattern of each mood, and the name of the phrase for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How many of the probes that the context before answered the new context answers."""

    continuity: Continuity
    lost: tuple[tuple[int, str], ...]
    """(message, sentence) of the first probes that are no longer answered, or are answered differently."""


class Exam:
    """The probes of a stretch, and the context in which it is folded.

    All work is linear in texts of capped size. It takes some hundredths of a second, so do not run it in an event loop.
    """

    def __init__(
        self,
        span: Sequence[Message],
        *,
        block: Layout | None = None,
        later: Sequence[Message] = (),
        anchors: Iterable[FoundAnchor] = (),
    ) -> None:
        """Make the probes, without those that cannot be answered before the compaction.

        Args:
            span: The messages to be folded, without secrets.
            block: The state block that is served so far.
            later: The messages after them, which are not folded.
            anchors: The active anchors of the stretch.
        """
        self._span: Final = tuple(span)
        self._pool: Final = StatementPool()
        folded = message_statements(sampled_messages(span))
        stretch = self._pool.add(folded)
        self._later: Final = self._pool.add(message_statements(newest_messages(later)))
        earlier = self._pool.add(stored_block_statements(block)) if block else range(0)
        self._context_before: Final = Context(self._pool, earlier, stretch, self._later)
        seqs = {message.seq for message in span}
        found = probes_of(folded, [one for one in anchors if one.seq in seqs], self._pool)
        once = {(one.kind, one.seq, one.answer or one.sentence): one for one in found}
        self.probes: Final = tuple(one for one in once.values() if is_current(one, self._context_before))

    def compare(self, state: Mapping[str, Any], layout: Layout, *, probes: Sequence[Probe] | None = None) -> Comparison:
        """Compare with the context that is served now.

        Args:
            state: The state as it is served.
            layout: The anchors and digests served with it, and which messages are held.
            probes: Other probes than its own, for a control.
        """
        asked_probes = self.probes if probes is None else probes
        held = frozenset(layout.held)
        block = self._pool.add(block_statements(state, layout))
        kept = self._pool.add(message_statements([one for one in self._span if one.seq in held]))
        now = Context(self._pool, block, kept, self._later)
        answers = [(probe, answer(probe, now, self._context_before)) for probe in asked_probes]
        lost = {(probe.seq, probe.sentence): None for probe, given in answers if given != "right"}
        block_text = " ".join(self._pool.statements[number].text for number in block)
        return Comparison(
            continuity=Continuity(kinds=_counts_by_kind(answers), tone=tone_kept(self._span, block_text)),
            lost=tuple(lost)[:MAX_ADDED_ITEMS],
        )


def _counts_by_kind(answers: Sequence[tuple[Probe, Answer]]) -> dict[ProbeKind, Answered]:
    counts: dict[ProbeKind, Answered] = {}
    for probe, given in answers:
        one = Answered(before=1, after=int(given == "right"), contradicted=int(given == "wrong"))
        counts[probe.kind] = counts.get(probe.kind, Answered()).plus(one)
    return counts


def tone_kept(span: Sequence[Message], summary: str) -> float | None:
    """How much of the tone of a stretch ``summary`` keeps, from 0 to 1: the share of its language and its moods.

    A mood is kept if ``summary`` has a word for it or a word that expresses it; how well is not measured.

    Returns:
        ``None`` if neither a language nor a mood is recognised in the stretch.
    """
    texts = [
        one.content for one in sampled_messages(span, _MAX_CHARACTERS) if one.role == "user" and not one.is_command
    ]
    spoken = "\n".join(texts)[:_MAX_CHARACTERS]
    summary = summary[:_MAX_CHARACTERS]
    checks = [summary.strip() != "" and not differs(summary, spoken)] if detect(spoken) else []
    for pattern, name in _MOODS:
        if sum(bool(pattern.search(text[:_MAX_CHARACTERS])) for text in texts) >= _MIN_MESSAGES_OF_MOOD:
            checks.append(bool(pattern.search(summary)) or _names_mood(name, summary))
    return round(sum(checks) / len(checks), 4) if checks else None


def _names_mood(name: str, text: str) -> bool:
    return any(str(getattr(known, name)).casefold() in text.casefold() for known in PHRASES.values())
