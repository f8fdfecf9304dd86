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
from operator import itemgetter
from typing import Final, Protocol

from app.core.context.drafts import (
    ContextInputs,
    Draft,
    block_sizes,
    draft_tokens,
    first_draft,
    rendered_weight,
    weight_of,
    with_anchors,
)
from app.core.context.escaped_messages import escaped_messages
from app.core.model.conversation import Message, Role
from app.core.model.errors import BudgetTooSmallError
from app.core.model.model_io import ContextMessage
from app.core.model.policies.budgets import exact_share
from app.core.reading.labels import name_for_model, role_of
from app.core.retrieval.ranking import SCORE_MARGIN, RecalledMessage
from app.core.retrieval.recall_decision import decide_recall
from app.core.retrieval.rendering import (
    Passage,
    Recall,
    labelled_roles,
    passages_element,
    recalled_element,
    with_elements_before,
)
from app.core.state.layout import ACKNOWLEDGEMENT, LeftOut, messages_tokens
from app.core.summarizer.offline.items import entry_tokens, label_and_clauses
from app.core.text.budget import each_fitting, without_last
from app.core.text.parts import joined_from, own_content, without_repeats
from app.core.text.token_counts import MESSAGE_OVERHEAD, byte_length, estimate_lines, tokens_of

MAX_RECALL_SHARE: Final = Fraction(9, 10)
"""The largest share of the room beside pins and the last user message that recall gets, unless nothing else needs more.

docs/decisions/0015 has the figures.
"""

TOOL_DATA_SHARE: Final = Fraction(9, 10)
"""The share of that room that data of tools in the state may keep."""

TOOL_DATA_RATIO: Final = Fraction(5, 2)
"""Data of tools may also keep no more than this many times the share that tools have of the conversation."""

ANCHORS_SHARE: Final = Fraction(1, 2)
"""The share of the room beside pins and the last user message that is kept for anchors, and for facts that tell more
than anchors, if the policy never leaves an anchor out."""

EXPLICIT_MARGIN: Final = 2 * SCORE_MARGIN
"""The margin below the best score if a budget can also serve segments: worse messages say less than a segment."""

SEPARATE_ROLE: Final[Role] = "tool"
"""The role whose recalled messages are separated from the user's words."""

_STEPS: Final = 5
"""Halvings in the search for the room that pins need: it is found to a thirty-second of the wanted room."""

FRAME_TOKENS: Final = 20
"""Tokens of the recall element's own lines, of the message around it and of the year, rounded up."""


class FitDraft(Protocol):
    """Makes a draft that fits into a number of tokens."""

    def __call__(self, tokens: int, *, needs_state: bool = True) -> Draft:
        """The draft. Without ``needs_state``, a state that does not fit is left out; messages are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """The room in tokens for the caller's own passages, and for recalled messages."""

    passages: int
    recalled: int


def with_recall(
    inputs: ContextInputs, fit: FitDraft, max_tokens: int, *, share_base: int, may_cut: bool, fill_limit: int | None
) -> Draft:
    """The draft with recalled messages. It fits into ``max_tokens`` if ``fit`` finds a draft without them that does.

    Other parts of the context are reduced for them as far as the policy allows, and get back room that is not used.

    Args:
        inputs: What the context is made of, ``recall`` included.
        fit: Makes all other parts fit.
        max_tokens: The tokens after the system prompt and the files.
        share_base: The tokens of which recall gets the policy's share.
        may_cut: Whether other parts may be left out for recalled messages.
        fill_limit: The size up to which recalled messages may fill the context; ``None``: the caller asked for a
            budget, and they may fill all of it, whatever the policy's share.
    """
    if inputs.recall is None:
        return fit(max_tokens)
    recall = _recall_if_needed(inputs, inputs.recall)
    allotted = _allotment(
        inputs, recall, fit, max_tokens, share_base=share_base, may_cut=may_cut, fill_limit=fill_limit
    )
    total = allotted.passages + allotted.recalled
    if not total:
        return _with_passages_and_recall(inputs, fit(max_tokens), recall, 0, None)
    total, rough = fit_with_all_held(
        inputs, partial(fit, needs_state=False), max_tokens, total
    )  # only messages influence the choice
    ranks = bool(total and recall.question)
    margin = _margin(inputs, recall)
    joined = _with_passages_and_recall(inputs, rough, recall, total, margin if ranks else None)
    used = recall_tokens(inputs, joined)
    if used < total:
        wider = fit(max_tokens - used)
        left = max_tokens - used - draft_tokens(inputs, wider) - (0 if wider.left_out else inputs.unloaded_tokens)
        if fill_limit is None and recall.is_explicit and ranks and left > 0:
            return _with_passages_and_recall(
                inputs, wider, recall, used + left, margin
            )  # the room that the rest does not use
        settled = _with_recalled_of(joined, wider, _unserved_recalled(wider, joined.recalled))
        if recall_tokens(inputs, settled) <= used:  # otherwise rounding made the whole larger
            return settled
    return _with_recalled_of(joined, fit(max_tokens - total), joined.recalled)


def fit_with_all_held(
    inputs: ContextInputs, fit: Callable[[int], Draft], max_tokens: int, wanted: int
) -> tuple[int, Draft]:
    """How many of the ``wanted`` tokens leave room for every held message, and the draft in the rest of the room.

    They also leave room for what cannot be left out: the last message, and a call or result that belongs to it.

    ``max_tokens`` is what the system prompt and the files leave; ``wanted`` is for recalled messages and passages.

    Raises:
        BudgetTooSmallError: Not even the last message fits into ``max_tokens``.
    """
    held_count = len(first_draft(inputs).held)

    def with_all_held(tokens: int) -> Draft | None:
        try:
            draft = fit(max_tokens - tokens)
        except BudgetTooSmallError:
            return None
        return draft if len(draft.held) >= held_count else None

    if (whole := with_all_held(wanted)) is not None:
        return wanted, whole
    total, draft, above = 0, fit(max_tokens), wanted
    for _ in range(_STEPS):
        middle = (total + above) // 2
        if not middle or middle == total:
            break
        if (attempt := with_all_held(middle)) is None:
            above = middle
        else:
            total, draft = middle, attempt
    return total, draft


def conversation_messages(draft: Draft, locale: str) -> tuple[ContextMessage, ...]:
    """Held messages and tail as they are sent, with recalled messages before the text of the last user message."""
    return _with_recalled(draft, escaped_messages(_messages_as_sent(draft)), locale)


def _messages_as_sent(draft: Draft) -> list[ContextMessage]:
    return [as_sent(message) for message in (*draft.held, *draft.tail)]


def _with_recalled(draft: Draft, messages: Sequence[ContextMessage], locale: str) -> tuple[ContextMessage, ...]:
    separate = [one for one in draft.recalled if one.source.role == SEPARATE_ROLE]
    in_question = [one for one in draft.recalled if one.source.role != SEPARATE_ROLE]
    fenced = with_elements_before(
        recalled_element(in_question, draft.named_roles, locale), passages_element(draft.passages)
    )
    before: tuple[ContextMessage, ...] = ()
    if separate:
        before = (
            ContextMessage(role=SEPARATE_ROLE, content=recalled_element(separate, (), locale, role=SEPARATE_ROLE)),
            ContextMessage(role="assistant", content=ACKNOWLEDGEMENT),
        )
    if not (fenced or before):
        return tuple(messages)
    first_of_tail = len(draft.held)
    for index in range(len(messages) - 1, first_of_tail - 1, -1):
        if messages[index].role == "user":
            user_message = replace(messages[index], content=with_elements_before(fenced, "", messages[index].content))
            return (*messages[:index], *before, user_message, *messages[index + 1 :])
    if not fenced:
        return (*messages, *before[:1])
    return (*messages, *before, ContextMessage(role="user", content=fenced))


def recall_tokens(inputs: ContextInputs, draft: Draft) -> int:
    """The tokens that recalled messages and passages add to a context."""
    if not draft.recalled and not draft.passages:
        return 0
    if draft.known_recall_tokens:
        return draft.known_recall_tokens[0]
    bare = _messages_as_sent(draft)  # not escaped: escaping adds no tokens
    whole = _with_recalled(draft, bare, inputs.conversation.locale)
    same = set(map(id, whole)) & set(map(id, bare))
    added, taken = ([one for one in messages if id(one) not in same] for messages in (whole, bare))
    whole_tokens = messages_tokens(added, inputs.policy.estimator, estimate_lines)
    draft.known_recall_tokens.append(max(whole_tokens - rendered_weight(inputs, taken), 0))
    return draft.known_recall_tokens[0]


def as_sent(message: Message) -> ContextMessage:
    """A stored message as it is sent, without repetitions of its content in its parts but for texts between media."""
    content = own_content(message.role, message.content, message.parts)
    is_in_place = message.role == "user" and joined_from(content, message.parts) != ""
    return ContextMessage(
        role=message.role,
        content=content,
        parts=message.parts if is_in_place else without_repeats(message.content, message.parts),
        name=name_for_model(message.metadata),
        seq=message.seq,
        event_type=message.event_type,
        is_protected=message.is_protected,
    )


def _recall_if_needed(inputs: ContextInputs, recall: Recall) -> Recall:
    if recall.is_explicit or not recall.question:
        return recall
    whole = first_draft(inputs)
    decision = decide_recall(
        recall.question,
        recall.completed_question,
        recall.corpus,
        served=_served_before_question(whole),
        seqs=served_seqs(whole),
        entries=_state_entries(inputs),
    )
    return recall if decision == "needed" else replace(recall, question="")


def _state_entries(inputs: ContextInputs) -> list[str]:
    state = inputs.conversation.compressed_state or {}
    return [text for value in state.values() for text in ([value] if isinstance(value, str) else value)]


def _served_before_question(whole: Draft) -> list[str]:
    tail = list(whole.tail)
    while tail and tail[-1].role != "user":
        tail.pop()  # calls of the answer so far, and their results
    while tail and tail[-1].role == "user":
        tail.pop()  # the question itself, and messages sent with it
    return [message.content for message in (*whole.held, *tail)]


def _allotment(
    inputs: ContextInputs,
    recall: Recall,
    fit: FitDraft,
    max_tokens: int,
    *,
    share_base: int,
    may_cut: bool,
    fill_limit: int | None,
) -> Allotment:
    whole = first_draft(inputs)
    free = max_tokens - draft_tokens(inputs, whole) - inputs.unloaded_tokens
    available = max(max_tokens - _tokens_that_stay(inputs, whole), 0)
    lasting = _lasting_anchor_tokens(inputs, whole)
    reserved = min(lasting, math.floor(ANCHORS_SHARE * available))
    recall_limit = math.floor(MAX_RECALL_SHARE * (available - reserved))
    recall_limit = recall_limit if may_cut else min(recall_limit, max(free, 0))
    wanted = MESSAGE_OVERHEAD + sum(_passage_sizes(inputs, recall.passages))
    passages = min(recall_limit, wanted) if recall.passages else 0
    if not recall.question:
        return Allotment(passages=passages, recalled=0)
    if recall.is_explicit and fill_limit is None:
        # data shares the room that is kept for anchors
        data = 0 if lasting > reserved else _tool_data_tokens(inputs, recall, recall_limit)
        return Allotment(passages=passages, recalled=max(recall_limit - passages - data, 0))
    share = math.floor(exact_share(inputs.policy.recall_share) * share_base)
    share = share if free < 0 else min(share, max(free - passages, 0))  # recall is a guess: it does not cut what fits
    if fill_limit is not None:
        present = draft_tokens(inputs, whole if free >= 0 else fit(max_tokens))
        if free >= 0 or present <= fill_limit:  # else something is cut anyway, and makes way for it
            share = min(share, max(fill_limit - present - passages, 0))
    return Allotment(passages=passages, recalled=min(share, recall_limit - passages))


def _tool_data_tokens(inputs: ContextInputs, recall: Recall, limit: int) -> int:
    # The next call needs the data, whatever the question; but if tools are a small part of a talk, few calls need it.
    state = inputs.conversation.compressed_state or {}
    texts = [text for value in state.values() if isinstance(value, list) for text in value]
    data_tokens = sum(entry_tokens(text) for text in texts if role_of(label_and_clauses(text)[0]) == "tool")
    share = min(TOOL_DATA_SHARE, TOOL_DATA_RATIO * recall.corpus.share_of_tools)
    return min(data_tokens + FRAME_TOKENS, math.floor(share * limit)) if data_tokens else 0


def _tokens_that_stay(inputs: ContextInputs, whole: Draft) -> int:
    users = [index for index, message in enumerate(whole.tail) if message.role == "user"]
    last = whole.tail[users[-1] if users else -1 :]
    return sum(weight_of(inputs, message) for message in (*whole.held, *last))


def _lasting_anchor_tokens(inputs: ContextInputs, whole: Draft) -> int:
    if inputs.policy.anchor_share is not None or not whole.tail:
        return 0
    # Anchors of the tail count as well: recalled messages may replace the tail.
    bare = replace(whole, left_out=LeftOut(from_seq=0, to_seq=whole.tail[-1].seq, digest=""))
    _, anchors, _ = block_sizes(inputs, with_anchors(inputs, bare, token_limit=None))
    return anchors


def closeness_to_best(inputs: ContextInputs) -> Mapping[int, float]:
    """How well each message answers the question, compared with the best one, from 0 to 1, by ``seq``; may be empty."""
    recall = inputs.recall
    if recall is None or not recall.question:
        return {}
    return inputs.ranking(recall).closeness


def _margin(inputs: ContextInputs, recall: Recall) -> float:
    if not recall.is_explicit:
        return SCORE_MARGIN
    return EXPLICIT_MARGIN if inputs.detail.segments else math.inf


def _with_passages_and_recall(
    inputs: ContextInputs, draft: Draft, recall: Recall, max_tokens: int, margin: float | None
) -> Draft:
    """The draft with as many passages as fit, in the caller's order, and recalled messages in the rest of the room.

    Nothing is recalled without a margin.
    """
    draft = _with_passages(inputs, draft, recall.passages, max_tokens)
    passages = recall_tokens(inputs, draft)
    if margin is None or max_tokens <= passages:
        return draft
    ranking = inputs.ranking(recall)
    draft = replace(draft, named_roles=labelled_roles(recall.corpus, inputs.conversation.locale))
    served = served_seqs(draft)
    packed = replace(draft, recalled=ranking.packed(max_tokens - passages - FRAME_TOKENS, served=served, margin=margin))
    unused = max_tokens - recall_tokens(inputs, packed)  # packing only estimated, and for one frame
    if packed.recalled and (unused > 0 or any(one.source.role == SEPARATE_ROLE for one in packed.recalled)):
        packed = replace(
            draft, recalled=ranking.packed(max_tokens - passages - FRAME_TOKENS + unused, served=served, margin=margin)
        )
    return _fitted_recall(inputs, packed, max_tokens)


def _with_passages(inputs: ContextInputs, draft: Draft, passages: tuple[Passage, ...], max_tokens: int) -> Draft:
    # Each passage is weighed by itself: weighing all that were taken with each next one takes quadratic time, and no
    # other thread goes on while megabytes are searched at once.
    sizes = _passage_sizes(inputs, passages)
    whole = replace(draft, passages=passages)
    may_fit = sum(sizes) - len(sizes) <= max_tokens  # each is rounded up
    if not passages or (may_fit and recall_tokens(inputs, whole) <= max_tokens):
        return whole
    frame_tokens = recall_tokens(inputs, replace(draft, passages=passages[:1])) - sizes[0]
    sized = zip(passages, sizes, strict=True)
    taken = each_fitting(sized, max_tokens - max(frame_tokens, 0), itemgetter(1))
    fitting = replace(draft, passages=tuple(passage for passage, _ in taken))
    while fitting.passages and recall_tokens(inputs, fitting) > max_tokens:  # all together may be rounded up
        fitting = replace(fitting, passages=fitting.passages[:-1])
    return fitting.warned(f"passages_left_out:{len(passages) - len(fitting.passages)}")


def _passage_sizes(inputs: ContextInputs, passages: Sequence[Passage]) -> list[int]:
    texts = (f"{passages_element((passage,))}\n" for passage in passages)
    return [tokens_of(estimate_lines(text), byte_length(text), inputs.policy.estimator) for text in texts]


def _fitted_recall(inputs: ContextInputs, draft: Draft, max_tokens: int) -> Draft:
    # Packing only estimated the tokens.
    while draft.recalled and (excess := recall_tokens(inputs, draft) - max_tokens) > 0:
        kept = without_last(draft.recalled, excess, lambda one: one.source.tokens)
        draft = replace(draft, recalled=tuple(kept))
    return draft


def _with_recalled_of(joined: Draft, draft: Draft, recalled: tuple[RecalledMessage, ...]) -> Draft:
    warnings = [warning for warning in joined.warnings if warning.startswith("passages_left_out")]
    return replace(draft, recalled=recalled, passages=joined.passages, named_roles=joined.named_roles).warned(*warnings)


def served_seqs(draft: Draft) -> frozenset[int]:
    """Positions of the messages that a draft serves verbatim."""
    return frozenset(message.seq for message in (*draft.held, *draft.tail))


def _unserved_recalled(draft: Draft, recalled: tuple[RecalledMessage, ...]) -> tuple[RecalledMessage, ...]:
    seqs = served_seqs(draft)
    return tuple(one for one in recalled if one.source.seq not in seqs)
