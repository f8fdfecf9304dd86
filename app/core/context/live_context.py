"""Chooses what is added to a live context: all messages that came since, or none if they do not fit. Pure.

The result is an ordinary context of a conversation that begins after the live one ends, without a state block, since
the provider has in full what a state would tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.core.context.assembly import AssembledContext, ContextInputs, assemble, exceeds_budget
from app.core.model.conversation import Message
from app.core.model.errors import ContextOverWindowError
from app.core.retrieval.corpus import Corpus
from app.core.retrieval.rendering import Passage, Recall
from app.core.text.parts import Part


def live_context_addition(inputs: ContextInputs, passages: tuple[Passage, ...] = ()) -> AssembledContext | None:
    """The messages of ``inputs.tail`` after the system prompt; ``None`` if they exceed the budget.

    Args:
        inputs: The inputs of a conversation that begins after the live context's last message.
        passages: The caller's passages, put into the last user message as far as there is room.
    """
    if inputs.unloaded_tokens or exceeds_budget(inputs):
        return None
    # Nothing may be cut, since the provider would never get it.
    uncut = replace(inputs, policy=inputs.policy.model_copy(update={"on_failure": "keep_full"}))
    recall = Recall(question="", corpus=Corpus(()), is_explicit=False, passages=passages) if passages else None
    try:
        return assemble(replace(uncut, recall=recall), digest=_no_digest)
    except ContextOverWindowError:
        return None


def calls_in(message: Message) -> tuple[Part, ...]:
    """The tool calls that a message makes."""
    return tuple(part for part in message.parts if part.get("type") == "tool_call")


def _no_digest(messages: Sequence[Message], max_tokens: int) -> str:
    raise AssertionError(f"{len(messages)} messages were to be left out, for {max_tokens} tokens")
