"""The layout of a state: the rendered state block, and how many tokens each of its parts takes.

A layout is computed once, in the transaction that writes a state version, and stored with it, so that the served block
stays the same to the byte until the next version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from typing import Any, Literal

from app.core.anchors.rendering import anchors_element, escape_served
from app.core.anchors.selection import NO_SERVED_ANCHORS, ServedAnchors
from app.core.model.conversation import Layout, Message
from app.core.model.model_io import ContextMessage
from app.core.model.schemas import in_order
from app.core.model.state import StateSchema
from app.core.state.digest_selection import DigestSource
from app.core.text.localization.catalogue import FALLBACK, catalogue_of
from app.core.text.token_counts import Estimator, estimate_text, tokens_of, weigh

ServedAs = Literal["pair", "assistant"]

ACKNOWLEDGEMENT = "Understood."
BLOCK_TAG = "session_state"
LEFT_OUT_TAG = "left_out"
HELD_TAG = "days"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A digest of the messages that truncation left out of a context."""

    from_seq: int
    to_seq: int
    digest: str

    def render(self) -> str:
        """The digest as an element of the state block."""
        opening = f'<{LEFT_OUT_TAG} from_seq="{self.from_seq}" to_seq="{self.to_seq}">'
        return f"{opening}\n{escape_served(self.digest)}\n</{LEFT_OUT_TAG}>"


def state_json(schema: StateSchema, state: Mapping[str, Any]) -> str:
    """A state as the served JSON: compact, and escaped so that no text in it can close the block.

    Fields have the schema's order, so that equal states give equal bytes.
    """
    return escape_served(json.dumps(in_order(schema, state), ensure_ascii=False, separators=(",", ":")))


def layout_of(
    schema: StateSchema,
    state: Mapping[str, Any],
    *,
    served_as: ServedAs,
    estimator: Estimator,
    held: Sequence[Message] = (),
    since: date | None = None,
    anchors: ServedAnchors = NO_SERVED_ANCHORS,
    markers: bool = True,
    locale: str = FALLBACK,
) -> Layout:
    """Render a state version for serving, without digests (``with_digests``).

    Args:
        schema: The schema of the state.
        state: The state in the shape of the schema's model.
        served_as: ``pair`` or ``assistant``.
        estimator: How tokens are counted.
        held: The held messages that follow the block.
        since: The day of the first message after the held ones.
        anchors: The anchors in the block.
        markers: Whether a marker leads to anchors without room; otherwise they are only counted.
        locale: The conversation's locale.
    """
    text = state_json(schema, state)
    element = anchors_element(anchors.shown, behind_marker=anchors.behind_marker if markers else 0)
    bare = messages_tokens(block_messages(text, served_as=served_as), estimator)
    whole = messages_tokens(block_messages(text, served_as=served_as, anchors=element), estimator) if element else bare
    days = days_element(held, since, locale)
    with_days = block_messages(text, served_as=served_as, anchors=element, held_days=days)
    dated = messages_tokens(with_days, estimator) if days else whole
    return Layout(
        text=text,
        tokens=max(dated, whole),
        anchors=element,
        anchor_tokens=max(whole - bare, 0),
        anchors_behind_marker=anchors.behind_marker,
        held=tuple(message.seq for message in held),
        held_days=days,
        held_day_tokens=max(dated - whole, 0),
    )


def days_element(held: Sequence[Message], since: date | None, locale: str) -> str:
    """The element with the days of held messages, so that a model does not take these for new; without system messages.

    Args:
        held: The messages.
        since: The day of the first message after them, which would otherwise seem to be from the last of these days.
        locale: The conversation's locale.
    """
    days = [message.created_at.date() for message in held if message.role != "system"]
    if not days:
        return ""
    catalogue = catalogue_of(locale)
    lines = []
    for day, group in groupby(days):
        count = len(list(group))
        lines.append(catalogue.date(day) + (f" ×{count}" if count > 1 else ""))
    if since and since != days[-1]:
        lines.append(catalogue.text("context.since", date=catalogue.date(since)))
    return "\n".join([f'<{HELD_TAG} of="{catalogue.text("context.held")}">', *lines, f"</{HELD_TAG}>"])


def with_digests(
    layout: Layout, source: DigestSource, *, max_tokens: int, later_digest_budget: int | None, served_as: ServedAs
) -> Layout:
    """The layout with as many digests as fit.

    Args:
        layout: A layout without digests.
        source: The segments of which digests are made.
        max_tokens: The most tokens that digests may add to the block.
        later_digest_budget: The most tokens for digests in later layouts of this version, which is stored; ``None``:
            the allotment.
        served_as: ``pair`` or ``assistant``.
    """
    bare = layout.tokens - layout.held_day_tokens

    def weight(element: str, held_days: str = "") -> int:
        block = block_messages(
            layout.text, served_as=served_as, anchors=layout.anchors, digests=element, held_days=held_days
        )
        return messages_tokens(block, source.estimator)

    digests = source.select_without_repeats(max_tokens, bare, lambda element: weight(element) - bare)
    tokens = max(weight(digests.element) - bare, 0) if digests.element else 0
    days = max(weight(digests.element, layout.held_days) - bare - tokens, 0) if layout.held_days else 0
    return replace(
        layout,
        tokens=bare + tokens + days,
        held_day_tokens=days,
        digests=digests.element,
        digest_tokens=tokens,
        digest_room=later_digest_budget,
        segments=digests.segments,
    )


def block_messages(
    text: str | None,
    *,
    served_as: ServedAs,
    anchors: str = "",
    digests: str = "",
    left_out: LeftOut | None = None,
    held_days: str = "",
) -> tuple[ContextMessage, ...]:
    """The messages that carry the block: a user and assistant pair, or one assistant message.

    Args:
        text: The state's JSON (``Layout.text``), ``None`` while there is no state.
        served_as: ``pair`` or ``assistant``.
        anchors: The rendered element (``Layout.anchors``); served even without a state.
        digests: The rendered element (``Layout.digests``).
        left_out: The digest of the messages that truncation left out; served even without a state.
        held_days: The rendered element (``Layout.held_days``); served only together with another part.
    """
    inner = [part for part in (text, anchors, digests, left_out.render() if left_out else None) if part]
    if not inner:
        return ()
    inner += [held_days] if held_days else []
    content = "\n".join([f"<{BLOCK_TAG}>", *inner, f"</{BLOCK_TAG}>"])
    if served_as == "assistant":
        return (ContextMessage(role="assistant", content=content),)
    return (ContextMessage(role="user", content=content), ContextMessage(role="assistant", content=ACKNOWLEDGEMENT))


def messages_tokens(
    messages: Sequence[ContextMessage], estimator: Estimator, estimate: Callable[[str], int] = estimate_text
) -> int:
    """The tokens of these messages, counted like stored ones; ``estimate`` counts the tokens of one text."""
    weights = [weigh(message.role, message.content, message.parts, estimate=estimate) for message in messages]
    return sum(tokens_of(weight.tokens, weight.bytes, estimator) for weight in weights)
