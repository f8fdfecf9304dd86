"""The offline model: deterministic, without a vocabulary or a network; what it says stands in what it was given.

``compress`` proposes a state, ``digest`` tells in a few lines what truncation leaves out, ``respond`` answers from the
context. All three are linear in the number of messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from app.domain.conversation import Message
from app.domain.extraction.answers import respond
from app.domain.extraction.choice import ITEM_OVERHEAD, Seen, choose
from app.domain.extraction.facts import Corrections, fact_items, open_items, resolved_entries
from app.domain.extraction.items import Item
from app.domain.extraction.labels import PHRASES, phrases
from app.domain.extraction.narrative import narrative
from app.domain.extraction.passages import Passage, clip, passages_of
from app.domain.extraction.scoring import score_all
from app.domain.extraction.style import style_items
from app.domain.extraction.topics import familiar_terms
from app.domain.language import detect
from app.domain.model_io import SummaryRequest
from app.domain.state import FieldRole, StateEntry, StateField
from app.domain.text import stems
from app.domain.tokens import estimate_text, weigh

__all__ = ["compress", "digest", "respond"]

_NEW_SHARE: Final = 0.25  # of the target is always there for the new span; the merge prunes what is too much
_SAVING_SHARE: Final = 0.6  # of the chunk's own tokens at most, so that folding it saves
_ONE_FACT: Final = 120  # tokens: a span of facts never ends as a story alone, even where no fact is short
_NARRATIVE_SHARE: Final = 0.12  # of the target
_NARRATIVE_ROOM: Final = 0.45  # of what is new
_NARRATIVE_MOST: Final = 60
_NARRATIVE_LEAST: Final = 44
_STYLE_SHARE: Final = 0.12
_STYLE_LEAST: Final = 48  # the tone and one wish
_KNOWN_SHARE: Final = 0.06
_MOST_OPEN: Final = 6
_SAMPLE: Final = 20_000  # characters by which the language is told


def compress(request: SummaryRequest) -> str:
    """Propose a state for a span: the candidate as JSON, in the conversation's language.

    Every item is taken from the span nearly verbatim and names its messages; a correction replaces the entry that it
    corrects, a settled open entry is dropped.
    """
    language = _language(request.messages, request.locale)
    passages = passages_of(request.messages, language)
    room = _room(request)
    corrections = Corrections(passages, request.previous)
    resolved = resolved_entries(passages, request.previous)
    collected = _Collected(request, passages, language, room, corrections)
    fields: dict[str, Any] = collected.fields()
    settled = {entry: seq for entry, seq in resolved if entry not in collected.replaced}
    fields["dropped"] = [{"entry": entry, "reason": "resolved", "by_seq": seq} for entry, seq in settled.items()]
    return json.dumps(fields, ensure_ascii=False)


def digest(messages: Sequence[Message], max_tokens: int, locale: str = "en") -> str:
    """The best sentences of these messages in order, each behind its ``#seq``, within ``max_tokens``."""
    passages = passages_of(messages, _language(messages, locale))
    chosen = choose(passages, score_all(passages), room=max_tokens, seen=Seen(), render=_numbered, at_least_one=True)
    lines = [_numbered(passage) for passage in chosen]
    while lines and estimate_text("\n".join(lines)) > max_tokens:
        lines.pop()
    return "\n".join(lines)


def _numbered(passage: Passage) -> str:
    return f"#{passage.seq} {passage.spoken}"


def _language(messages: Sequence[Message], locale: str) -> str:
    """The language that is spoken, by the newest messages; the locale's when that cannot be told."""
    sample: list[str] = []
    length = 0
    for message in reversed(messages):
        if message.role in {"user", "assistant"}:
            sample.append(message.content[:2_000])
            length += len(sample[-1])
        if length > _SAMPLE:
            break
    return detect("\n".join(sample)) or locale.replace("_", "-").partition("-")[0].lower() or "en"


def _room(request: SummaryRequest) -> int:
    """Tokens for everything new."""
    kept = sum(
        estimate_text(entry.text) + ITEM_OVERHEAD for entry in request.previous if entry.role in {"fact", "open"}
    )
    own = sum(weigh(message.role, message.content, message.parts).tokens for message in request.messages)
    return int(min(max(_NEW_SHARE * request.target_tokens, request.target_tokens - kept), _SAVING_SHARE * own))


class _Collected:
    """The items of one request, by role, and their way into the fields of its schema."""

    def __init__(
        self,
        request: SummaryRequest,
        passages: Sequence[Passage],
        language: str,
        room: int,
        corrections: Corrections,
    ) -> None:
        self._schema = request.schema
        self._roles = {field.role for field in request.schema.fields}
        left = room
        self.style = self._within(
            style_items(request.messages, passages, request.previous, language), _style_room(room), "style"
        )
        self.known = self._within(_known_items(passages, request.previous, language), int(_KNOWN_SHARE * room), "known")
        self.open = self._within(
            open_items(passages, request.previous, language, most=_MOST_OPEN), int(room * 0.2), "open"
        )
        left -= sum(item.cost for item in [*self.style, *self.known, *self.open])
        story_room = min(
            _NARRATIVE_MOST,
            int(_NARRATIVE_ROOM * room),
            max(_NARRATIVE_LEAST, int(_NARRATIVE_SHARE * request.target_tokens)),
        )
        self.story = narrative(passages, request.previous, language, room=story_room)
        left -= estimate_text(self.story) if "narrative" in self._roles else 0
        told = frozenset(p.index for item in [*self.open, *self.style] for p in item.passages)
        find = partial(
            fact_items,
            passages,
            request.previous,
            focus=request.focus,
            language=language,
            corrections=corrections,
            spared=told,
        )
        self.facts = find(room=max(left, 0)) or find(room=_ONE_FACT)[:1]
        self.replaced = {
            entry for item in [*self.facts, *self.open, *self.style, *self.known] for entry in item.replaces
        }

    def _within(self, items: Sequence[Item], room: int, role: FieldRole) -> list[Item]:
        """The first items that fit; none for a role which has neither a field nor a place among the facts."""
        if role not in self._roles and role != "open":
            return []
        kept: list[Item] = []
        for item in items:
            room -= item.cost
            if room < 0:
                break
            kept.append(item)
        return kept

    def fields(self) -> dict[str, Any]:
        """Every field of the schema, filled by its role."""
        lists: dict[str, list[dict[str, Any]]] = {field.name: [] for field in self._schema.fields if field.is_list}
        by_role: dict[FieldRole, list[Item]] = {
            "fact": self.facts,
            "open": self.open,
            "style": self.style,
            "known": self.known,
        }
        story = self.story
        for role, items in by_role.items():
            for item in items:
                target = _field_for(item, role, self._schema.fields)
                if target is None:
                    story = f"{story} {item.text}".strip() if role in {"fact", "open"} else story
                else:
                    lists[target].append({"text": item.text, "from": list(item.seqs), "replaces": list(item.replaces)})
        stories = {field.name: story for field in self._schema.fields if not field.is_list}
        return {field.name: stories.get(field.name, lists.get(field.name)) for field in self._schema.fields}


def _field_for(item: Item, role: FieldRole, fields: Sequence[StateField]) -> str | None:
    """The field of that role, by the words of its request where there are several; facts take in what has no field."""
    fitting = [field for field in fields if field.role == role] or [field for field in fields if field.role == "fact"]
    if not fitting:
        return None
    if len(fitting) == 1:
        return fitting[0].name
    wanted = frozenset(stems(" ".join(cue for passage in item.passages for cue in sorted(passage.cues))))
    if any(found.kind == "path" for passage in item.passages for found in passage.identifiers):
        wanted |= {"file", "path"}
    return max(fitting, key=lambda field: (len(wanted & frozenset(stems(field.ask))), -fitting.index(field))).name


def _known_items(passages: Sequence[Passage], previous: Sequence[StateEntry], language: str) -> list[Item]:
    """The terms the user is at home with, joined to those known before."""
    found = familiar_terms(passages)
    if not found:
        return []
    words = phrases(language)
    label = words.uses if words else ""
    labels = tuple(known.uses for known in PHRASES.values())
    ours = [entry for entry in previous if entry.role == "known" and entry.text.startswith(labels)]
    before = [term for entry in ours for term in entry.text.partition(": ")[2].split(", ")]
    terms = list(dict.fromkeys([*before, *(term for term, _ in found)]))
    text = clip(label + ", ".join(terms))
    if any(entry.text == text for entry in previous):
        return []
    return [Item(text=text, seqs=tuple(sorted({seq for _, seq in found})), replaces=tuple(entry.id for entry in ours))]


def _style_room(room: int) -> int:
    return min(room // 3, max(_STYLE_LEAST, int(_STYLE_SHARE * room)))
