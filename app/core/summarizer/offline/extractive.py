"""The offline summarizer: deterministic, without a vocabulary or a network. It only repeats what it was given.

``compress`` proposes a state, ``digest`` says in a few lines what truncation leaves out, ``respond`` answers from the
context. All three take time linear in the number of messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from app.core.anchors.selection import is_entry_in_anchors, serve
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.model_io import SummaryRequest
from app.core.model.provenance import language_or_locale
from app.core.model.state import FieldRole, StateEntry, StateField, StateSchema
from app.core.reading.choice import KeptTexts, Option, choose
from app.core.reading.importance import ratings_of
from app.core.reading.passages import Passage, passages_of, with_terse_data
from app.core.reading.scoring import relevance_by_passage, score_all
from app.core.summarizer.offline.corrections import Corrections
from app.core.summarizer.offline.facts import FactLimits, Facts, facts_of
from app.core.summarizer.offline.files import file_items
from app.core.summarizer.offline.items import Item, entry_tokens
from app.core.summarizer.offline.kinds import OBJECTIVE, PATH, field_for, objective
from app.core.summarizer.offline.narrative import narrative
from app.core.summarizer.offline.narrative_states import is_narrative_only, joined_narrative, narrative_as_entries
from app.core.summarizer.offline.open_points import open_items
from app.core.summarizer.offline.phrasing import Phrasing
from app.core.summarizer.offline.style import style_items
from app.core.summarizer.offline.understood_points import understood_items
from app.core.summarizer.prompt_rules import SAVING_SHARE
from app.core.text.budget import first_fitting
from app.core.text.identifiers import find_identifiers
from app.core.text.language import language_of_locale
from app.core.text.shortening import fitted
from app.core.text.token_counts import estimate_text, weigh
from app.core.text.words import stems

_NEW_SHARE: Final = 0.25  # the share of the target that the new span always gets, at the cost of the weakest entries
_GROWTH_FACTOR: Final = 1.5
"""Times the target: a state to which code added may stay so large; the rest of the cap is for code."""
_FRAME_TOKENS: Final = 24  # tokens of the block's tags and its acknowledgement
_ONE_FACT_TOKENS: Final = 120
"""Tokens for one fact, so that a span with facts never gives only a story, even if all are long."""
_NARRATIVE_SHARE: Final = 0.12  # the share of the target for the narrative
_NARRATIVE_SHARE_OF_NEW: Final = 0.3  # the share of the room for new text that the narrative may take
_MAX_NARRATIVE_TOKENS: Final = 90
_MIN_NARRATIVE_TOKENS: Final = 44
_BRIEF_TOKENS: Final = 340  # tokens; with a smaller target all are needed for facts
_STYLE_SHARE: Final = 0.12
_MIN_STYLE_TOKENS: Final = 48  # tokens for the tone and one wish
_KNOWN_SHARE: Final = 0.12
_FILES_SHARE: Final = 0.3  # the share of the room for new text that files get, if a field asks for files
_DATA_SHARE: Final = 0.5  # the share of the target; if tools' data takes more, it is written in fewer words
_MAX_OBJECTIVES: Final = 1


def compress(request: SummaryRequest) -> str:
    """Propose a state for a span: the candidate as JSON, in the conversation's language.

    Every item is taken from the span nearly verbatim and names its messages; a correction replaces the entry that it
    corrects. If the state is one text, its statements are treated as entries.
    """
    language = request.language or language_of_locale(request.locale)
    if is_narrative_only(request.schema):
        request = replace(request, previous=narrative_as_entries(request.previous, request.schema, language))
    passages = passages_of(request.messages, language, brief=_is_brief(request))
    if sum(entry_tokens(passage.text) for passage in passages if passage.line) > _DATA_SHARE * request.target_tokens:
        passages = with_terse_data(passages, relevance_by_passage(passages))
    replaceable = [entry for entry in request.previous if not is_entry_in_anchors(request.anchors, entry)]
    collected = _CandidateContent(request, passages, language, Corrections(passages, replaceable))
    fields: dict[str, Any] = collected.fields()
    fields["dropped"] = collected.drops(request.messages[-1].seq if request.messages else 0)
    return json.dumps(fields, ensure_ascii=False)


def digest(messages: Sequence[Message], max_tokens: int, locale: str = "en") -> str:
    """The best sentences of these messages in order, each after its ``#seq``, within ``max_tokens``."""
    passages = passages_of(messages, language_or_locale(messages, locale))
    worths = score_all(passages)
    options = [
        Option(
            key=passage.index,
            worth=worths[passage.index],
            stems=passage.stems,
            size=len(passage.text),
            cost=partial(_line_cost, passage),
        )
        for passage in passages
    ]
    chosen = choose(options, token_limit=max_tokens, kept_texts=KeptTexts(), at_least_one=True)
    lines = [_numbered_line(passages[option.key]) for option in chosen]
    while lines and estimate_text("\n".join(lines)) > max_tokens:
        lines.pop()
    return "\n".join(lines)


def _numbered_line(passage: Passage) -> str:
    return f"#{passage.seq} {passage.text_with_speaker}"


def _line_cost(passage: Passage) -> int:
    return entry_tokens(_numbered_line(passage))


def _served_anchors(request: SummaryRequest) -> Sequence[FoundAnchor]:
    through = max((anchor.seq for anchor in request.anchors), default=0)
    return serve(request.anchors, through_seq=through, held_seqs=(), token_limit=request.anchor_room).shown


def _kept_texts(texts: Sequence[str]) -> KeptTexts:
    return KeptTexts(
        (frozenset(stems(text)) for text in texts),
        (found.text.casefold() for text in texts for found in find_identifiers(text)),
    )


def _is_brief(request: SummaryRequest) -> bool:
    return request.target_tokens < _BRIEF_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """How many tokens may be written."""

    target: int
    """The tokens of the whole state, without its frame."""
    most_new: int
    """The most tokens of everything new: with more, nothing would be saved."""
    least_new: int
    """The least room in tokens for everything new, however full the state is."""

    @classmethod
    def of(cls, request: SummaryRequest) -> _Limits:
        """The limits by the size of the state so far and of the folded messages."""
        before = sum(entry_tokens(entry.text) for entry in request.previous)
        own = sum(weigh(message.role, message.content, message.parts).tokens for message in request.messages)
        frame = estimate_text(json.dumps({field.name: "" for field in request.schema.fields})) + _FRAME_TOKENS
        grown = request.target_tokens
        if not is_narrative_only(request.schema):  # entries may stay, while one text is written anew within its target
            grown = max(grown, min(before + frame, int(_GROWTH_FACTOR * request.target_tokens)))
        target, new = max(grown - frame, request.target_tokens // 2), int(SAVING_SHARE * own)
        return cls(target=target, most_new=new, least_new=int(min(max(_NEW_SHARE * target, target - before), new)))


class _CandidateContent:
    """The items of one request, by role, and their distribution to the fields of its schema."""

    def __init__(
        self, request: SummaryRequest, passages: Sequence[Passage], language: str, corrections: Corrections
    ) -> None:
        limits, previous, ratings = _Limits.of(request), request.previous, ratings_of(passages)
        self._ratings = ratings
        self._schema = request.schema
        self._previous = previous
        self._objective = objective(passages) if not previous and _wants_objective(request.schema) else None
        self._roles = {field.role for field in request.schema.fields}
        new_tokens = limits.least_new
        style = style_items(request.messages, passages, previous, language)
        if _is_brief(request):
            style = [item for item in style if item.passages]
        self.style = self._fitting_items(style, _style_tokens(new_tokens), "style")
        known = understood_items(passages, ratings.likely, previous)
        self.known = self._fitting_items(known, int(_KNOWN_SHARE * new_tokens), "known")
        self.open = self._fitting_items(open_items(passages, previous, language), int(new_tokens * 0.2), "open")
        self.narrative = (
            self._narrative_text(request, passages, language, new_tokens) if "narrative" in self._roles else ""
        )
        phrasing = Phrasing(passages, ratings, corrections, is_brief=_is_brief(request))
        self.files = self._file_items(passages, phrasing, corrections, int(_FILES_SHARE * new_tokens))
        other_items = [*self.style, *self.known, *self.open, *self.files]
        other_tokens = [item.tokens for item in other_items] + [estimate_text(self.narrative)]
        replaced_ids = {entry for ids in corrections.replaced.values() for entry in ids}
        replaced_ids.update(entry for item in [*self.style, *self.known, *self.open] for entry in item.replaces)
        staying = [entry for entry in previous if entry.id not in replaced_ids]
        objectives = _objectives(staying, request.schema)
        earlier = [entry for entry in staying if entry.role in {"fact", "open"} and entry not in objectives]
        staying_tokens = sum(
            entry_tokens(entry.text) for entry in staying if entry.role in {"style", "known"} or entry in objectives
        )
        facts = self._facts(
            passages,
            earlier,
            objectives,
            phrasing=phrasing,
            corrections=corrections,
            request=request,
            limits=FactLimits(
                total=limits.target - staying_tokens - sum(other_tokens),
                most_new=limits.most_new - sum(other_tokens),
                least_new=max(new_tokens - sum(other_tokens), 0),
            ),
        )
        self.facts, self.given_up = self._with_objective(facts.items), facts.given_up
        if not (self.narrative or self.facts or self.open or self.style or self.known) and "narrative" in self._roles:
            self.narrative = narrative(
                passages, ratings, previous, language, max_tokens=_MIN_NARRATIVE_TOKENS
            )  # small talk is kept too
        self.replaced = {
            entry for item in [*self.facts, *self.open, *self.style, *self.known] for entry in item.replaces
        }

    def _file_items(
        self, passages: Sequence[Passage], phrasing: Phrasing, corrections: Corrections, max_tokens: int
    ) -> list[Item]:
        field = _field_of_files(self._schema)
        if field is None:
            return []
        open_indexes = {passage.index for item in self.open for passage in item.passages}
        # Passages that correct something are among the facts.
        excluded_indexes = open_indexes | corrections.outdated | corrections.replaced.keys()
        known = [entry.text for entry in self._previous if entry.field == field.name]
        if self._objective is not None:
            excluded_indexes.add(self._objective.index)
        return file_items(passages, known, phrasing, max_tokens=max_tokens, excluded_indexes=excluded_indexes)

    def _narrative_text(
        self, request: SummaryRequest, passages: Sequence[Passage], language: str, new_tokens: int
    ) -> str:
        target = request.target_tokens
        # In such a small state each token is needed for facts.
        if _is_brief(request):
            return ""
        most = min(
            _MAX_NARRATIVE_TOKENS,
            int(_NARRATIVE_SHARE_OF_NEW * new_tokens),
            max(_MIN_NARRATIVE_TOKENS, int(_NARRATIVE_SHARE * target)),
        )
        return narrative(passages, self._ratings, request.previous, language, max_tokens=most)

    def _with_objective(self, facts: Sequence[Item]) -> list[Item]:
        objective_passage = self._objective
        other_items = [*facts, *self.open, *self.files]
        if objective_passage is None or any(
            passage.index == objective_passage.index for item in other_items for passage in item.passages
        ):
            return list(facts)
        return [
            Item(
                text=objective_passage.core_with_speaker, seqs=(objective_passage.seq,), passages=(objective_passage,)
            ),
            *facts,
        ]

    def _facts(
        self,
        passages: Sequence[Passage],
        earlier: Sequence[StateEntry],
        objectives: Sequence[StateEntry],
        *,
        phrasing: Phrasing,
        corrections: Corrections,
        request: SummaryRequest,
        limits: FactLimits,
    ) -> Facts:
        anchor_texts, objective_texts = (
            [anchor.content for anchor in _served_anchors(request)],
            [entry.text for entry in objectives],
        )
        find = partial(
            facts_of,
            passages,
            earlier,
            ratings=self._ratings,
            focus=request.focus,
            phrasing=phrasing,
            corrections=corrections,
            excluded_indexes=frozenset(
                p.index for item in [*self.open, *self.style, *self.known, *self.files] for p in item.passages
            ),
        )
        facts = find(
            kept_texts=_kept_texts([*anchor_texts, *objective_texts, *(item.text for item in self.files)]),
            limits=limits,
        )
        if facts.items or (anchor_texts and (self.open or self.style or self.known)):
            return facts
        # A record must not be empty, even if anchors say everything: find one fact.
        single_fact = find(
            kept_texts=_kept_texts(objective_texts),
            limits=FactLimits(total=_ONE_FACT_TOKENS, most_new=_ONE_FACT_TOKENS, least_new=_ONE_FACT_TOKENS),
        )
        return Facts(items=single_fact.items[:1] or self._beginning_of_long_passage(passages), given_up=())

    def _beginning_of_long_passage(self, passages: Sequence[Passage]) -> tuple[Item, ...]:
        if is_narrative_only(self._schema):  # its story says how the talk began
            return ()
        long = [passage for passage in passages if entry_tokens(passage.core_with_speaker) > _ONE_FACT_TOKENS]
        best = max(long, key=lambda passage: self._ratings.likely[passage.index], default=None)
        return (
            (Item(text=fitted(best.core_with_speaker, _ONE_FACT_TOKENS), seqs=(best.seq,), passages=(best,)),)
            if best
            else ()
        )

    def _fitting_items(self, items: Sequence[Item], max_tokens: int, role: FieldRole) -> list[Item]:
        # Open points without a field of their own are put among the facts.
        if role not in self._roles and role != "open":
            return []
        return first_fitting(items, max_tokens, lambda item: item.tokens)

    def drops(self, last_seq: int) -> list[dict[str, Any]]:
        """The drops of entries that had to make room for what is worth more."""
        if is_narrative_only(self._schema):
            return []
        weak = [entry for entry in self.given_up if entry not in self.replaced]
        return [{"entry": entry, "reason": "no_longer_relevant", "by_seq": last_seq} for entry in weak]

    def fields(self) -> dict[str, Any]:
        """Every field of the schema with its items: each in the field for its kind, or else for its role."""
        lists: dict[str, list[dict[str, Any]]] = {field.name: [] for field in self._schema.fields if field.is_list}
        by_role: dict[FieldRole, list[Item]] = {
            "fact": self.facts,
            "open": self.open,
            "style": self.style,
            "known": self.known,
        }
        file_field = _field_of_files(self._schema)
        if file_field is not None:
            lists[file_field.name] += [
                {"text": item.text, "from": list(item.seqs), "replaces": list(item.replaces)} for item in self.files
            ]
        narrative_texts: list[str] = []
        objective_index = self._objective.index if self._objective else None
        for role, items in by_role.items():
            for item in items:
                target = field_for(item, role, self._schema, objective_index)
                if target.is_list:
                    entry = {"text": item.text, "from": list(item.seqs), "replaces": list(item.replaces)}
                    lists[target.name].append(entry)
                else:
                    narrative_texts.append(item.text)
        narrative_text = (
            joined_narrative(self.narrative, [*self._staying_texts(), *narrative_texts])
            if is_narrative_only(self._schema)
            else self.narrative
        )
        narratives = {field.name: narrative_text for field in self._schema.fields if not field.is_list}
        return {field.name: narratives.get(field.name, lists.get(field.name)) for field in self._schema.fields}

    def _staying_texts(self) -> list[str]:
        removed = self.replaced | set(self.given_up)
        return [entry.text for entry in self._previous if entry.role != "narrative" and entry.id not in removed]


def _field_of_files(schema: StateSchema) -> StateField | None:
    return next((field for field in schema.fields if field.is_list and PATH in field.takes), None)


def _wants_objective(schema: StateSchema) -> bool:
    return is_narrative_only(schema) or any(OBJECTIVE in field.takes for field in schema.fields)


def _objectives(entries: Sequence[StateEntry], schema: StateSchema) -> list[StateEntry]:
    names = {field.name for field in schema.fields if OBJECTIVE in field.takes}
    return [entry for entry in entries if entry.role == "fact" and (is_narrative_only(schema) or entry.field in names)][
        :_MAX_OBJECTIVES
    ]


def _style_tokens(new_tokens: int) -> int:
    return min(new_tokens // 3, max(_MIN_STYLE_TOKENS, int(_STYLE_SHARE * new_tokens)))
