"""Puts recalled messages into a draft: decides how much room they get, which are chosen, and where they stand.

Recalled messages stand at the end, inside the last user message and before its text, so that everything before it stays
the same to the byte. If no user message is served, they get a message of their own at the end. Results of tools are
not anybody's words: they stand before that message, in a message of role ``tool``, with an acknowledgement like that of
the state block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final, Protocol

from app.core.context.drafts import (
    Draft,
    Material,
    block_sizes,
    first_draft,
    size_of,
    weigh_all,
    weight_of,
    with_anchors,
)
from app.core.context.served import served_messages
from app.core.model.conversation import Message, Role
from app.core.model.model_io import ContextMessage
from app.core.model.policies.policy import exact
from app.core.reading.labels import name_for_model, role_of
from app.core.retrieval.ranking import MARGIN, Recalled
from app.core.retrieval.recall_decision import decide_recall
from app.core.retrieval.serving import (
    Passage,
    Recall,
    before_text,
    labelled,
    passages_element,
    recalled_element,
)
from app.core.state.layout import ACKNOWLEDGEMENT, LeftOut, messages_tokens
from app.core.summarizer.offline.items import cost, parted
from app.core.text.budget import without_last
from app.core.text.parts import own_content, without_repeats
from app.core.text.token_counts import estimate_lines

MOST: Final = Fraction(9, 10)
"""The largest share of the room beside pins and the last user message that recall gets, unless nothing else needs more.

docs/decisions/0015 has the figures.
"""

DATA_SHARE: Final = Fraction(9, 10)
"""The share of that room that data of tools in the state may keep."""

DATA_TO_TOOLS: Final = Fraction(5, 2)
"""Data of tools may also keep no more than this many times the share that tools have of the conversation."""

ANCHORS_SHARE: Final = Fraction(1, 2)
"""The share of the room beside pins and the last user message that is kept for anchors, and for facts that tell more
than anchors, if the policy never leaves an anchor out."""

EXPLICIT_MARGIN: Final = 2 * MARGIN
"""The margin below the best score if a budget can also serve segments: worse messages say less than a segment."""

APART: Final[Role] = "tool"
"""The role whose recalled messages are separated from the user's words."""

_STEPS: Final = 5
"""Halvings in the search for the room that pins need: it is found to a thirty-second of the wanted room."""

FRAME: Final = 20
"""Tokens of the recall element's own lines, of the message around it and of the year, rounded up."""


class Fit(Protocol):
    """Makes a draft that fits into a number of tokens."""

    def __call__(self, tokens: int, *, told: bool = True) -> Draft:
        """The draft. Without ``told``, a state that does not fit as a whole is left out; the messages are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """The room in tokens for the caller's own passages, and for recalled messages."""

    passages: int
    recalled: int


def with_recall(material: Material, fit: Fit, room: int, *, base: int, may_cut: bool, most: int | None) -> Draft:
    """The draft with recalled messages. It fits into ``room`` if ``fit`` finds a draft without them that does.

    Other parts of the context are reduced for them as far as the policy allows, and get back room that is not used.

    Args:
        material: What the context is made of, ``recall`` included.
        fit: Makes all other parts fit.
        room: The tokens after the system prompt and the files.
        base: The tokens of which recall gets the policy's share.
        may_cut: Whether other parts may be left out for recalled messages.
        most: The size up to which recalled messages may fill the context; ``None``: the caller asked for a budget, and
            they may fill all of it, whatever the policy's share.
    """
    if material.recall is None:
        return fit(room)
    recall = _recall_if_needed(material, material.recall)
    allotted = _allotment(material, recall, fit, room, base=base, may_cut=may_cut, most=most)
    total = allotted.passages + allotted.recalled
    if not total:
        return _with_passages_and_recall(material, fit(room), recall, 0, None)
    total, rough = beside_pins(material, partial(fit, told=False), room, total)  # only messages influence the choice
    ranks = bool(total and recall.question)
    margin = _margin(material, recall)
    joined = _with_passages_and_recall(material, rough, recall, total, margin if ranks else None)
    used = recall_tokens(material, joined)
    if used < total:
        wider = fit(room - used)
        left = room - used - size_of(material, wider) - (0 if wider.left_out else material.unloaded_tokens)
        if most is None and recall.is_explicit and ranks and left > 0:
            return _with_passages_and_recall(
                material, wider, recall, used + left, margin
            )  # the room that the rest does not use
        settled = _with_recalled_of(joined, wider, _unserved_recalled(wider, joined.recalled))
        if recall_tokens(material, settled) <= used:  # otherwise rounding made the whole larger
            return settled
    return _with_recalled_of(joined, fit(room - total), joined.recalled)


def beside_pins(material: Material, fit: Callable[[int], Draft], room: int, wanted: int) -> tuple[int, Draft]:
    """How many of the ``wanted`` tokens leave room for every held message, and the draft in the rest of the room.

    ``room`` is what the system prompt and the files leave; ``wanted`` is for recalled messages and passages.
    """
    pins = len(first_draft(material).held)
    draft = fit(room - wanted)
    if len(draft.held) >= pins:
        return wanted, draft
    total, draft, above = 0, fit(room), wanted
    for _ in range(_STEPS):
        tried = (total + above) // 2
        if not tried or tried == total:
            break
        attempt = fit(room - tried)
        total, above, draft = (tried, above, attempt) if len(attempt.held) >= pins else (total, tried, draft)
    return total, draft


def spoken(draft: Draft, locale: str) -> tuple[ContextMessage, ...]:
    """Held messages and tail as they are sent, with recalled messages before the text of the last user message."""
    return _with_recalled(draft, served_messages(_messages_as_sent(draft)), locale)


def _messages_as_sent(draft: Draft) -> list[ContextMessage]:
    return [as_sent(message) for message in (*draft.held, *draft.tail)]


def _with_recalled(draft: Draft, messages: Sequence[ContextMessage], locale: str) -> tuple[ContextMessage, ...]:
    apart = [one for one in draft.recalled if one.source.role == APART]
    beside = [one for one in draft.recalled if one.source.role != APART]
    fenced = before_text(recalled_element(beside, draft.named, locale), passages_element(draft.passages))
    before: tuple[ContextMessage, ...] = ()
    if apart:
        before = (
            ContextMessage(role=APART, content=recalled_element(apart, (), locale, of=APART)),
            ContextMessage(role="assistant", content=ACKNOWLEDGEMENT),
        )
    if not (fenced or before):
        return tuple(messages)
    first_of_tail = len(draft.held)
    for index in range(len(messages) - 1, first_of_tail - 1, -1):
        if messages[index].role == "user":
            asked = replace(messages[index], content=before_text(fenced, "", messages[index].content))
            return (*messages[:index], *before, asked, *messages[index + 1 :])
    if not fenced:
        return (*messages, *before[:1])
    return (*messages, *before, ContextMessage(role="user", content=fenced))


def recall_tokens(material: Material, draft: Draft) -> int:
    """The tokens that recalled messages and passages add to a context."""
    if not draft.recalled and not draft.passages:
        return 0
    if draft.weighed:
        return draft.weighed[0]
    bare = _messages_as_sent(draft)  # not escaped: escaping adds no tokens
    whole = _with_recalled(draft, bare, material.conversation.locale)
    same = set(map(id, whole)) & set(map(id, bare))
    added, taken = ([one for one in messages if id(one) not in same] for messages in (whole, bare))
    whole_tokens = messages_tokens(added, material.policy.estimator, estimate_lines)
    draft.weighed.append(max(whole_tokens - weigh_all(material, taken), 0))
    return draft.weighed[0]


def as_sent(message: Message) -> ContextMessage:
    """A stored message as it is sent, without repetitions of its content in its parts."""
    content = own_content(message.role, message.content, message.parts)
    return ContextMessage(
        role=message.role,
        content=content,
        parts=without_repeats(message.content, message.parts),
        name=name_for_model(message.metadata),
        seq=message.seq,
        event_type=message.event_type,
        is_protected=message.is_protected,
    )


def _recall_if_needed(material: Material, recall: Recall) -> Recall:
    if recall.is_explicit or not recall.question:
        return recall
    whole = first_draft(material)
    decision = decide_recall(
        recall.question,
        recall.asked,
        recall.corpus,
        served=_served_before_question(whole),
        seqs=served_seqs(whole),
        entries=_state_entries(material),
    )
    return recall if decision == "needed" else replace(recall, question="")


def _state_entries(material: Material) -> list[str]:
    state = material.conversation.compressed_state or {}
    return [text for value in state.values() for text in ([value] if isinstance(value, str) else value)]


def _served_before_question(whole: Draft) -> list[str]:
    tail = list(whole.tail)
    while tail and tail[-1].role != "user":
        tail.pop()  # calls of the answer so far, and their results
    while tail and tail[-1].role == "user":
        tail.pop()  # the question itself, and messages sent with it
    return [message.content for message in (*whole.held, *tail)]


def _allotment(
    material: Material, recall: Recall, fit: Fit, room: int, *, base: int, may_cut: bool, most: int | None
) -> Allotment:
    whole = first_draft(material)
    free = room - size_of(material, whole) - material.unloaded_tokens
    left = max(room - _tokens_that_stay(material, whole), 0)
    lasting = _lasting_anchor_tokens(material, whole)
    kept = min(lasting, math.floor(ANCHORS_SHARE * left))
    nearly_all = math.floor(MOST * (left - kept))
    nearly_all = nearly_all if may_cut else min(nearly_all, max(free, 0))
    wanted = weigh_all(material, (ContextMessage(role="user", content=passages_element(recall.passages)),))
    passages = min(nearly_all, wanted) if recall.passages else 0
    if not recall.question:
        return Allotment(passages=passages, recalled=0)
    if recall.is_explicit and most is None:
        # data shares the room that is kept for anchors
        data = 0 if lasting > kept else _room_for_tool_data(material, recall, nearly_all)
        return Allotment(passages=passages, recalled=max(nearly_all - passages - data, 0))
    share = math.floor(exact(material.policy.recall_share) * base)
    share = share if free < 0 else min(share, max(free - passages, 0))  # recall is a guess: it does not cut what fits
    if most is not None:
        present = size_of(material, whole if free >= 0 else fit(room))
        if free >= 0 or present <= most:  # else something is cut anyway, and makes way for it
            share = min(share, max(most - present - passages, 0))
    return Allotment(passages=passages, recalled=min(share, nearly_all - passages))


def _room_for_tool_data(material: Material, recall: Recall, most: int) -> int:
    # The next call needs the data, whatever the question; but if tools are a small part of a talk, few calls need it.
    state = material.conversation.compressed_state or {}
    texts = [text for value in state.values() if isinstance(value, list) for text in value]
    told = sum(cost(text) for text in texts if role_of(parted(text)[0]) == "tool")
    share = min(DATA_SHARE, DATA_TO_TOOLS * recall.corpus.share_of_tools)
    return min(told + FRAME, math.floor(share * most)) if told else 0


def _tokens_that_stay(material: Material, whole: Draft) -> int:
    users = [index for index, message in enumerate(whole.tail) if message.role == "user"]
    last = whole.tail[users[-1] if users else -1 :]
    return sum(weight_of(material, message) for message in (*whole.held, *last))


def _lasting_anchor_tokens(material: Material, whole: Draft) -> int:
    if material.policy.anchor_share is not None or not whole.tail:
        return 0
    # Anchors of the tail count as well: recalled messages may replace the tail.
    bare = replace(whole, left_out=LeftOut(from_seq=0, to_seq=whole.tail[-1].seq, digest=""))
    _, anchors, _ = block_sizes(material, with_anchors(material, bare, room=None))
    return anchors


def closeness_to_best(material: Material) -> Mapping[int, float]:
    """How well each message answers the question, compared with the best one, from 0 to 1, by ``seq``; may be empty."""
    recall = material.recall
    if recall is None or not recall.question:
        return {}
    return material.ranking(recall).closeness


def _margin(material: Material, recall: Recall) -> float:
    if not recall.is_explicit:
        return MARGIN
    return EXPLICIT_MARGIN if material.detail.segments else math.inf


def _with_passages_and_recall(
    material: Material, draft: Draft, recall: Recall, room: int, margin: float | None
) -> Draft:
    """The draft with as many passages as fit, in the caller's order, and recalled messages in the rest of the room.

    Nothing is recalled without a margin.
    """
    draft = _with_passages(material, draft, recall.passages, room)
    passages = recall_tokens(material, draft)
    if margin is None or room <= passages:
        return draft
    ranking = material.ranking(recall)
    draft = replace(draft, named=labelled(recall.corpus, material.conversation.locale))
    served = served_seqs(draft)
    packed = replace(draft, recalled=ranking.packed(room - passages - FRAME, served=served, margin=margin))
    unused = room - recall_tokens(material, packed)  # packing only estimated, and for one frame
    if packed.recalled and (unused > 0 or any(one.source.role == APART for one in packed.recalled)):
        packed = replace(draft, recalled=ranking.packed(room - passages - FRAME + unused, served=served, margin=margin))
    return _fitted_recall(material, packed, room)


def _with_passages(material: Material, draft: Draft, passages: tuple[Passage, ...], room: int) -> Draft:
    taken: tuple[Passage, ...] = ()
    for passage in passages:
        longer = replace(draft, passages=(*taken, passage))
        if recall_tokens(material, longer) <= room:
            taken = longer.passages
    left_out = len(passages) - len(taken)
    draft = replace(draft, passages=taken)
    return draft.warned(f"passages_left_out:{left_out}") if left_out else draft


def _fitted_recall(material: Material, draft: Draft, room: int) -> Draft:
    # Packing only estimated the tokens.
    while draft.recalled and (excess := recall_tokens(material, draft) - room) > 0:
        kept = without_last(draft.recalled, excess, lambda one: one.source.tokens)
        draft = replace(draft, recalled=tuple(kept))
    return draft


def _with_recalled_of(joined: Draft, draft: Draft, recalled: tuple[Recalled, ...]) -> Draft:
    warnings = [warning for warning in joined.warnings if warning.startswith("passages_left_out")]
    return replace(draft, recalled=recalled, passages=joined.passages, named=joined.named).warned(*warnings)


def served_seqs(draft: Draft) -> frozenset[int]:
    """Positions of the messages that a draft serves verbatim."""
    return frozenset(message.seq for message in (*draft.held, *draft.tail))


def _unserved_recalled(draft: Draft, recalled: tuple[Recalled, ...]) -> tuple[Recalled, ...]:
    seqs = served_seqs(draft)
    return tuple(one for one in recalled if one.source.seq not in seqs)
