"""Finds the message for which a provider blocks a whole prompt, by asking with some messages withheld.

Pure: a ``WithholdingSearch`` says which messages to withhold next, and is told whether the provider still blocked the
prompt.
Every question is a usable compaction, so the search may end at any time with the best answer so far.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.model.conversation import Message
from app.core.text.token_counts import weigh

WITHHELD: Final = "[withheld]"
"""The text shown in place of a withheld message's words; its role, number and time are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithholdingSearch:
    """The messages ``start`` to ``stop`` (exclusive), which include the blocked one."""

    start: int
    stop: int
    was_accepted: bool = False
    """Whether the provider accepted a prompt with exactly these messages withheld."""
    given_up: bool = False
    """Whether the provider also blocked a call without any of these messages: something else causes it as well."""

    def next(self, calls: int) -> range | None:
        """The messages to withhold in the next call, with ``calls`` left; ``None`` if no call can help.

        As long as no prompt was accepted, the last call is not used for narrowing the range.
        """
        size = self.stop - self.start
        if calls < 1 or self.given_up or (self.was_accepted and size == 1):
            return None
        if size > 1 and (self.was_accepted or calls > 1):
            return range(self.start, self.start + size // 2)
        return range(self.start, self.stop)

    def after(self, withheld: range, *, blocked: bool) -> WithholdingSearch:
        """The search after the provider answered the question that ``next`` gave."""
        if not blocked:
            return WithholdingSearch(start=withheld.start, stop=withheld.stop, was_accepted=True)
        if len(withheld) == self.stop - self.start:
            return replace(self, given_up=True)
        return WithholdingSearch(start=withheld.stop, stop=self.stop)


def with_placeholders(messages: Sequence[Message], seqs: Collection[int]) -> tuple[Message, ...]:
    """The messages, with those at ``seqs`` replaced by placeholders."""
    return tuple(_placeholder(message) if message.seq in seqs else message for message in messages)


def _placeholder(message: Message) -> Message:
    weight = weigh(message.role, WITHHELD, ())
    return replace(message, content=WITHHELD, parts=(), token_count=weight.tokens, byte_length=weight.bytes)
