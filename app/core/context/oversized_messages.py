"""Cuts the middle out of messages that are too large for a context; the stored originals are kept whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from app.core.context.drafts import ContextInputs, Draft, draft_tokens, outline_of, weight_of
from app.core.model.conversation import Message
from app.core.planning.cuts import turn_starts
from app.core.reading.labels import with_name_for_model
from app.core.text.budget import make_fitting
from app.core.text.elision import elide, size_limits
from app.core.text.parts import own_content, without_repeats
from app.core.text.token_counts import estimate_text, weigh

LARGE_MESSAGE_DIVISOR: Final = 32
"""A message is large if it takes more than one part in so many of a window; that many shortened messages still fit."""
_OVERSIZED_DIVISOR: Final = 2
"""A message that can never fit is shown in the tokens divided by this, so that the rest fits too."""


def with_oversized_elided(inputs: ContextInputs, draft: Draft, max_tokens: int) -> Draft:
    """Cut the middle out of messages of the last turn that can never fit."""
    starts = turn_starts([outline_of(message) for message in draft.tail])
    first = starts[-1] if starts else 0
    tail = list(draft.tail)
    for index in range(first, len(tail)):
        if weight_of(inputs, tail[index]) > max_tokens:
            tail[index] = _elided_message(inputs, tail[index], max_tokens // _OVERSIZED_DIVISOR)
    changed = [new.seq for new, old in zip(tail, draft.tail, strict=True) if new is not old]
    return replace(draft, tail=tuple(tail)).warned(*(f"message_elided:{seq}" for seq in changed))


def with_all_oversized_elided(inputs: ContextInputs, draft: Draft, max_tokens: int) -> Draft:
    """Cut the middle out of every message that alone is larger than the room; nothing else changes."""
    oversized = [message for message in (*draft.held, *draft.tail) if weight_of(inputs, message) > max_tokens]
    if not oversized:
        return draft
    share = max_tokens // (_OVERSIZED_DIVISOR * len(oversized))
    shorter = {large.seq: _elided_message(inputs, large, share) for large in oversized}

    def served(messages: Sequence[Message]) -> tuple[Message, ...]:
        return tuple(shorter.get(message.seq, message) for message in messages)

    changed = replace(draft, held=served(draft.held), tail=served(draft.tail))
    return changed.warned(*(f"message_elided:{large.seq}" for large in oversized))


def with_large_elided(inputs: ContextInputs, draft: Draft, max_tokens: int) -> Draft:
    """Shorten large messages of the tail, the largest first, until everything fits; none if that is not enough."""
    least = inputs.budgets.window // LARGE_MESSAGE_DIVISOR
    originals = {message.seq: message for message in inputs.tail}
    large = [originals[one.seq] for one in draft.tail if weight_of(inputs, originals[one.seq]) > least]
    of_large = {message.seq for message in large}
    rest = replace(draft, tail=tuple(one for one in draft.tail if one.seq not in of_large))
    limits = size_limits(
        [weight_of(inputs, message) for message in large], max(max_tokens - draft_tokens(inputs, rest), 0)
    )
    if not large or min(limits) < least:
        return draft
    shorter = {one.seq: _elided_message(inputs, one, share) for one, share in zip(large, limits, strict=True)}
    changed = replace(draft, tail=tuple(shorter.get(one.seq, one) for one in draft.tail))
    return changed.warned(*(f"message_elided:{one.seq}" for one in large if shorter[one.seq] is not one))


def with_tail_elided(inputs: ContextInputs, draft: Draft, max_tokens: int) -> Draft:
    """Shorten the messages that must stay until they fit, the largest first."""
    originals = {message.seq: message for message in inputs.tail}
    whole = [originals[message.seq] for message in draft.tail]
    rest = draft_tokens(inputs, replace(draft, tail=()))
    sizes = [weight_of(inputs, message) for message in whole]

    def cut(left: int) -> tuple[Message, ...]:
        limits = size_limits(sizes, left)
        return tuple(_elided_message(inputs, message, share) for message, share in zip(whole, limits, strict=True))

    def over(tail: Sequence[Message]) -> int:
        return rest + sum(weight_of(inputs, message) for message in tail) - max_tokens

    tail = make_fitting(cut, over, max(max_tokens - rest, 0))
    changed = [new.seq for new, old in zip(tail, whole, strict=True) if new is not old]
    return replace(draft, tail=tail).warned(*(f"message_elided:{seq}" for seq in changed))


def _elided_message(inputs: ContextInputs, message: Message, tokens: int) -> Message:
    """A message without its middle, of at most ``tokens`` if that is possible; texts of parts are shortened too."""
    if weight_of(inputs, message) <= tokens:
        return message
    own_text = own_content(message.role, message.content, message.parts)
    own_parts = without_repeats(message.content, message.parts)
    texts = [own_text, *(str(part[key]) for part in own_parts if (key := _text_key(part)))]
    sizes = [estimate_text(text) for text in texts]

    def cut(token_limit: int) -> Message:
        limits, locale = size_limits(sizes, token_limit), inputs.conversation.locale
        elided = iter([_elided_if_shorter(text, share, locale) for text, share in zip(texts, limits, strict=True)])
        content = next(elided)
        parts = tuple({**part, key: next(elided)} if (key := _text_key(part)) else part for part in own_parts)
        weight = weigh(message.role, with_name_for_model(message.role, content, message.metadata), parts)
        return replace(message, content=content, parts=parts, token_count=weight.tokens, byte_length=weight.bytes)

    shorter = make_fitting(cut, lambda one: weight_of(inputs, one) - tokens, max(tokens, 0))
    return shorter if weight_of(inputs, shorter) < weight_of(inputs, message) else message


def _elided_if_shorter(text: str, tokens: int, locale: str) -> str:
    elided = elide(text, tokens, locale)
    return elided if estimate_text(elided) < estimate_text(text) else text


def _text_key(part: Mapping[str, Any]) -> str | None:
    key = {"text": "text", "tool_result": "content"}.get(str(part.get("type")))
    return key if key and isinstance(part.get(key), str) else None
