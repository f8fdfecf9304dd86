"""How a state is served: the rendered block, and what it weighs.

A layout is computed once, in the transaction that writes a state version, and stored with it, so that what is served
stays the same to the byte until the next version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from app.domain.anchors.rendering import anchors_element, escape_served
from app.domain.anchors.serving import NOTHING_SERVED, Served
from app.domain.assembling.digesting import Digestible
from app.domain.conversation import Layout
from app.domain.model_io import ContextMessage
from app.domain.states.state import StateSchema
from app.domain.weighing.tokens import Estimator, tokens_of, weigh

ServedAs = Literal["pair", "assistant"]

ACKNOWLEDGEMENT = "Understood."
BLOCK_TAG = "session_state"
LEFT_OUT_TAG = "left_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What truncation left out of a context, in a digest."""

    from_seq: int
    to_seq: int
    digest: str

    def render(self) -> str:
        """The element inside the block."""
        opening = f'<{LEFT_OUT_TAG} from_seq="{self.from_seq}" to_seq="{self.to_seq}">'
        return f"{opening}\n{escape_served(self.digest)}\n</{LEFT_OUT_TAG}>"


def state_json(schema: StateSchema, state: Mapping[str, Any]) -> str:
    """A state as the JSON that is served: compact, unable to close the block that it stands in.

    Members stand in the schema's order, since JSONB keeps none: the same state is the same bytes.
    """
    ordered = {field.name: state[field.name] for field in schema.fields if field.name in state}
    return escape_served(json.dumps(ordered, ensure_ascii=False, separators=(",", ":")))


def layout_of(
    schema: StateSchema,
    state: Mapping[str, Any],
    *,
    served_as: ServedAs,
    estimator: Estimator,
    held: Sequence[int] = (),
    anchors: Served = NOTHING_SERVED,
    markers: bool = True,
) -> Layout:
    """Render a state version for serving, without digests (``with_digests``).

    Args:
        schema: Of the state.
        state: In the shape of the schema's model.
        served_as: ``pair`` or ``assistant``.
        estimator: How the block is weighed.
        held: The messages that follow the block.
        anchors: Those that stand in the block.
        markers: Whether markers are served; without them, what has no room is only counted.
    """
    text = state_json(schema, state)
    element = anchors_element(anchors.shown, behind_marker=anchors.behind_marker if markers else 0)
    bare = messages_tokens(block_messages(text, served_as=served_as), estimator)
    whole = messages_tokens(block_messages(text, served_as=served_as, anchors=element), estimator) if element else bare
    return Layout(
        text=text,
        tokens=whole,
        anchors=element,
        anchor_tokens=max(whole - bare, 0),
        anchors_behind_marker=anchors.behind_marker,
        held=tuple(held),
    )


def with_digests(layout: Layout, source: Digestible, *, room: int, kept: int | None, served_as: ServedAs) -> Layout:
    """The layout with as many digests as fit.

    Args:
        layout: Without digests.
        source: The segments.
        room: The most tokens that digests may add to the block.
        kept: The room that later layouts of this version keep to; ``None``: their allotment.
        served_as: ``pair`` or ``assistant``.
    """

    def added(element: str) -> int:
        block = block_messages(layout.text, served_as=served_as, anchors=layout.anchors, digests=element)
        return messages_tokens(block, source.estimator) - layout.tokens

    digests = source.within(room, added)
    tokens = max(added(digests.element), 0) if digests.element else 0
    return replace(
        layout,
        tokens=layout.tokens + tokens,
        digests=digests.element,
        digest_tokens=tokens,
        digest_room=kept,
        segments=digests.segments,
    )


def block_messages(
    text: str | None,
    *,
    served_as: ServedAs,
    anchors: str = "",
    digests: str = "",
    left_out: LeftOut | None = None,
) -> tuple[ContextMessage, ...]:
    """The messages that carry the block: a user and assistant pair, or one assistant message.

    Args:
        text: The state's JSON (``Layout.text``), ``None`` while there is no state.
        served_as: ``pair`` or ``assistant``.
        anchors: The rendered element (``Layout.anchors``); served even without a state.
        digests: The rendered element (``Layout.digests``).
        left_out: The digest of what truncation left out; served even without a state.
    """
    inner = [part for part in (text, anchors, digests, left_out.render() if left_out else None) if part]
    if not inner:
        return ()
    content = "\n".join([f"<{BLOCK_TAG}>", *inner, f"</{BLOCK_TAG}>"])
    if served_as == "assistant":
        return (ContextMessage(role="assistant", content=content),)
    return (ContextMessage(role="user", content=content), ContextMessage(role="assistant", content=ACKNOWLEDGEMENT))


def messages_tokens(messages: Sequence[ContextMessage], estimator: Estimator) -> int:
    """What these messages weigh, each weighed as it would be when stored."""
    weights = [weigh(message.role, message.content, message.parts) for message in messages]
    return sum(tokens_of(weight.tokens, weight.bytes, estimator) for weight in weights)
