"""The candidate: the JSON schema that a summarizer is asked for, and reading its answer.

Reading is tolerant if nothing can be misunderstood (fences, bare strings, numbers as strings, unknown keys), and
refuses the rest. Nothing here judges content: the gate does.
"""

from __future__ import annotations

import contextlib
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, cast, get_args

from app.core.model.anchors import AnchorType, ClaimedStatus
from app.core.model.candidate import AnchorAnswer, AnchorProposal, Candidate, CandidateDrop, CandidateItem
from app.core.model.conversation import Message
from app.core.model.segments import SegmentDigest
from app.core.model.state import StateEntry, StateSchema
from app.core.model.word_overlap import Overlap
from app.core.text.escaping import clean
from app.core.text.json_data import data_at, data_in
from app.core.text.patterns import compiled
from app.core.text.sentences import sentences

NO_LONGER_RELEVANT: Final = "no_longer_relevant"
DROP_REASONS: Final = ("contradicted", "resolved", NO_LONGER_RELEVANT)
ANCHOR_TYPES: Final[tuple[str, ...]] = get_args(AnchorType)
_STATUS_BY_DROP_REASON: Final[Mapping[str, ClaimedStatus]] = {
    "contradicted": "superseded",
    "resolved": "resolved",
    NO_LONGER_RELEVANT: "withdrawn",
}
"""The claim about an anchor that dropping its passage makes, by the reason of the drop."""

_MAX_CHARACTERS: Final = 400_000  # more than any output limit allows for an honest state
_DEEPEST_NESTING: Final = 24  # the most levels; the format needs five
_MAX_ITEMS: Final = 1_000
_MAX_ANCHORS: Final = 200  # the most proposals that are read, since each is looked for in its message
_MAX_DIGESTS: Final = 200  # the most descriptions that are read
_MAX_TAGS: Final = 60
_MAX_TAG_LENGTH: Final = 100  # characters; a longer text is not a keyword
_MAX_TOPIC_LENGTH: Final = 120
_MAX_BRIEF_LENGTH: Final = 4_000
_MAX_QUOTE_LENGTH: Final = 2_000  # characters; a longer text is a whole message, not a passage, and can be pinned
_MAX_ITEM_LENGTH: Final = 1_000  # characters; a longer item becomes several, cut at sentence ends, so nothing is lost

_REASONING: Final = compiled(
    r"(?<!\s)\s*+<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_END_OF_REASONING: Final = "</think>"
_FENCED: Final = compiled(r"```[\w-]*+[ \t]*+\n(.*?)```", re.DOTALL)
_BEGINNINGS_OF_JSON: Final = ("", "{", "[", "`", '"')
_FIRST_NAME: Final = compiled(r'\{\s*+"([^"\\]{1,100})"')
"""The beginning of an object in JSON, with its first name."""
_BULLET: Final = compiled(r"^(?:[-*•–—]\s+)+")
_NUMBER: Final = compiled(r"\d{1,15}")
_ENTRY_ID: Final = compiled(r"[A-Za-z]\d{1,15}")
_KEPT_PASSAGE_ID: Final = compiled(r"[\s\"'<\[#]{0,4}([Pp]\d{1,15}-\d{1,4})[\s\"'>\]]{0,4}")


class CandidateError(Exception):
    """The answer cannot be read; ``reason`` is ``empty_summary``, ``not_a_summary`` or ``unparseable``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def candidate_json_schema(schema: StateSchema, *, segments: bool = False, anchors: bool = True) -> dict[str, Any]:
    """The JSON Schema for constrained decoding: every key is required, and items of all lists share one definition.

    ``segments`` says whether segments are to be described, ``anchors`` whether passages are to be proposed.
    """
    fields = {field.name: _LIST_SCHEMA if field.is_list else {"type": "string"} for field in schema.fields}
    has_lists = any(field.is_list for field in schema.fields)
    lists: dict[str, Mapping[str, Any]] = {"dropped": _DROP_SCHEMA} if has_lists else {}
    if anchors:
        lists["anchors"] = _ANCHOR_SCHEMA
    if segments:
        lists["segments"] = _DIGEST_SCHEMA
    shape = _object_schema({**fields, **{name: {"type": "array", "items": shape} for name, shape in lists.items()}})
    return {**shape, "$defs": {"item": _ITEM_SCHEMA}} if has_lists else shape


def second_answer_json_schema(schema: StateSchema) -> dict[str, Any]:
    """The JSON Schema for the answer of a summarizer that is asked about its answer again."""
    fields = [field.name for field in schema.fields if field.is_list] or [field.name for field in schema.fields]
    added = _object_schema(
        {
            "field": {"type": "string", "enum": fields},
            "text": {"type": "string"},
            "from": {"type": "array", "items": {"type": "integer"}},
        }
    )
    statement = _object_schema({"n": {"type": "integer"}, "text": {"type": "string"}})
    return _object_schema(
        {"statements": {"type": "array", "items": statement}, "added": {"type": "array", "items": added}}
    )


def parse_candidate(text: str, schema: StateSchema) -> Candidate:
    """Read a summarizer's answer.

    Raises:
        CandidateError: ``empty_summary`` (nothing but spaces or reasoning, or no field holds a text), ``not_a_summary``
            (prose instead of JSON), ``unparseable`` (anything else that is not the object asked for).
    """
    data = _state_object(_json_of_record(text, schema), schema)
    items = tuple(islice(_items(data, schema), _MAX_ITEMS))
    narrative = {
        field.name: text_of_field
        for field in schema.fields
        if not field.is_list and (text_of_field := _narrative(data.get(field.name)))
    }
    if not items and not narrative:
        raise CandidateError("empty_summary")
    return Candidate(
        items=items,
        narrative=narrative,
        dropped=tuple(_drops(data.get("dropped"))),
        anchors=tuple(dict.fromkeys(_anchors(data.get("anchors")))),
        anchor_answers=tuple({word.id: word for word in _words_about_kept_passages(data)}.values()),
        digests=_digests(data.get("segments")),
    )


def without_drops_for_space(candidate: Candidate) -> Candidate:
    """The candidate without drops that only make room; drops of contradicted or settled entries are kept."""
    return replace(candidate, dropped=tuple(drop for drop in candidate.dropped if drop.reason != NO_LONGER_RELEVANT))


def attribute_sources(
    candidate: Candidate, messages: Sequence[Message], previous: Iterable[StateEntry] = ()
) -> Candidate:
    """The candidate with only sources that were shown.

    An item that is left without a source gets the messages that share most with it, if any share enough. The model was
    shown the messages, and in entries the numbers of the messages on which the state so far is based.
    """
    shown_seqs = {message.seq for message in messages}.union(*(entry.from_seqs for entry in previous))
    known = [
        replace(item, from_seqs=tuple(seq for seq in item.from_seqs if seq in shown_seqs)) for item in candidate.items
    ]
    if all(item.from_seqs for item in known):
        return replace(candidate, items=tuple(known))
    overlap = Overlap(messages)
    return replace(
        candidate,
        items=tuple(item if item.from_seqs else replace(item, from_seqs=overlap.sources(item.text)) for item in known),
    )


def _object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
    }


_STRINGS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "string"}}
_ITEM_SCHEMA: Final = _object_schema(
    {"text": {"type": "string"}, "from": {"type": "array", "items": {"type": "integer"}}, "replaces": _STRINGS}
)
_LIST_SCHEMA: Final[Mapping[str, Any]] = {"type": "array", "items": {"$ref": "#/$defs/item"}}
_DROP_SCHEMA: Final = _object_schema(
    {
        "entry": {"type": "string"},
        "reason": {"type": "string", "enum": list(DROP_REASONS)},
        "by_seq": {"type": "integer"},
    }
)
_ANCHOR_SCHEMA: Final = _object_schema(
    {
        "type": {"type": "string", "enum": list(ANCHOR_TYPES)},
        "quote": {"type": "string"},
        "seq": {"type": "integer"},
    }
)
_DIGEST_SCHEMA: Final = _object_schema(
    {"segment": {"type": "integer"}, "topic": {"type": "string"}, "brief": {"type": "string"}, "tags": _STRINGS}
)


def without_reasoning(answer: str) -> str:
    """A model's answer without the thoughts that it wrote into it."""
    return clean(_REASONING.sub("", without_unopened_reasoning(answer), count=3)).strip()


def without_unopened_reasoning(answer: str) -> str:
    """A model's answer without thoughts that are only closed, since the prompt ended with the tag that opens them.

    A tag of which an answer speaks stands among words.
    """
    thoughts, closing, rest = answer.partition(_END_OF_REASONING)
    is_spoken_of = not thoughts.endswith("\n") and rest[:1] not in {"\n", "{", "["}
    if not closing or is_spoken_of or "<" in thoughts or thoughts.lstrip()[:1] in _BEGINNINGS_OF_JSON:
        return answer
    return rest


def json_in_answer(text: str) -> Any:
    """The JSON value in an answer, alone, fenced, or after thoughts or a word of introduction.

    Raises:
        ValueError: There is no JSON that can be read.
    """
    for piece in _possible_json(text):
        with contextlib.suppress(ValueError):
            return data_in(piece, deepest=_DEEPEST_NESTING, strict=False)
    raise ValueError("no JSON")


def _json_of_record(text: str, schema: StateSchema) -> Any:
    with contextlib.suppress(ValueError):
        return json_in_answer(text)
    answer = without_reasoning(text)
    if not answer:
        raise CandidateError("empty_summary")
    with contextlib.suppress(ValueError):
        return _last_record(answer, schema)
    is_meant_as_json = (
        answer[0] in "{[" or "```" in answer or any(f'"{field.name}"' in answer for field in schema.fields)
    )
    is_prose = any(character.isalpha() for character in answer)
    raise CandidateError("not_a_summary" if is_prose and not is_meant_as_json else "unparseable")


def _last_record(answer: str, schema: StateSchema) -> Any:
    """The last object in an answer that begins with a field of the state: models write drafts and remarks beside it.

    Raises:
        ValueError: There is none, or it is not whole.
    """
    if len(answer) > _MAX_CHARACTERS:
        raise ValueError("too large")
    names = {field.name for field in schema.fields}
    starts = [found.start() for found in _FIRST_NAME.finditer(answer) if found[1] in names]
    if not starts:
        raise ValueError("no record")
    return data_at(answer, starts[-1], deepest=_DEEPEST_NESTING)


def _possible_json(text: str) -> Iterator[str]:
    # The unchanged answer is tried as well: what reads like thoughts may be a tag in the text of an item.
    unchanged = clean(text).strip()
    answers = [unchanged, *_pieces(without_reasoning(text)), *_pieces(unchanged)]
    return (piece for piece in answers if len(piece) <= _MAX_CHARACTERS)


def _pieces(answer: str) -> Iterator[str]:
    yield answer
    if fenced := _FENCED.search(answer):
        yield fenced[1].rstrip(" \t").removesuffix("\n")
    start, end = answer.find("{"), answer.rfind("}")
    if 0 <= start < end:
        yield answer[start : end + 1]


def _state_object(value: Any, schema: StateSchema) -> Mapping[str, Any]:
    """The object with the state's fields: the value itself, or the only object wrapped in it."""
    names = {field.name for field in schema.fields}
    for _ in range(3):
        if isinstance(value, dict) and names & value.keys():
            return value
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        if len(inner) != 1:
            break
        value = inner[0]
    if value is None or value in ("", {}, []):
        raise CandidateError("empty_summary")
    raise CandidateError("not_a_summary" if isinstance(value, str) else "unparseable")


def _items(data: Mapping[str, Any], schema: StateSchema) -> Iterator[CandidateItem]:
    for field in schema.fields:
        if not field.is_list:
            continue
        for raw in _as_list(data.get(field.name)):
            yield from _item(field.name, raw)


def _item(field: str, raw: Any) -> Iterator[CandidateItem]:
    fields: Mapping[str, Any] = raw if isinstance(raw, dict) else {"text": raw}
    if "text" not in fields:
        raise CandidateError("unparseable")
    from_seqs = sources_in(fields.get("from"))
    replaces = tuple(dict.fromkeys(entry for value in _as_list(fields.get("replaces")) for entry in _entry_ids(value)))
    for text in filter(says_anything, _split_at_sentences(statement_in(fields["text"]))):
        yield CandidateItem(field=field, text=text, from_seqs=from_seqs, replaces=replaces)


def _drops(value: Any) -> Iterator[CandidateDrop]:
    for raw in islice(_as_list(value), _MAX_ITEMS):
        if not isinstance(raw, dict) or _kept_passage_id(raw.get("entry")):
            continue
        if entry := _entry_id(raw.get("entry")):
            yield CandidateDrop(
                entry=entry, reason=_snake_case_word(raw.get("reason")), by_seq=number_in(raw.get("by_seq"))
            )


def _anchors(value: Any) -> Iterator[AnchorProposal]:
    """The proposals that can be read. The others are ignored, and do not make the candidate refused."""
    for raw in islice(_as_list(value), _MAX_ANCHORS):
        if not isinstance(raw, dict):
            continue
        type_, quote, seq = _snake_case_word(raw.get("type")), raw.get("quote"), number_in(raw.get("seq"))
        if (
            type_ not in ANCHOR_TYPES
            or _kept_passage_id(quote)
            or not isinstance(quote, str)
            or seq is None
            or len(quote) > _MAX_QUOTE_LENGTH
        ):
            continue
        if quote_text := clean(quote).strip():
            yield AnchorProposal(type=cast("AnchorType", type_), quote=quote_text, seq=seq)


def _words_about_kept_passages(data: Mapping[str, Any]) -> Iterator[AnchorAnswer]:
    for raw in islice(_as_list(data.get("anchors")), _MAX_ITEMS):
        id_value = raw.get("quote") if isinstance(raw, dict) else raw
        if name := _kept_passage_id(id_value):
            yield AnchorAnswer(id=name, claims=None)
    for raw in islice(_as_list(data.get("dropped")), _MAX_ITEMS):
        if (
            isinstance(raw, dict)
            and (name := _kept_passage_id(raw.get("entry")))
            and _snake_case_word(raw.get("reason")) in _STATUS_BY_DROP_REASON
        ):
            yield AnchorAnswer(
                id=name,
                claims=_STATUS_BY_DROP_REASON[_snake_case_word(raw.get("reason"))],
                by_seq=number_in(raw.get("by_seq")),
            )


def _digests(value: Any) -> tuple[SegmentDigest, ...]:
    """The first readable description of each segment; unreadable ones do not make the candidate refused."""
    if isinstance(value, dict):  # the descriptions by number, instead of a list
        value = [
            {"segment": number, **description} for number, description in value.items() if isinstance(description, dict)
        ]
    found: dict[int, SegmentDigest] = {}
    for raw in islice(_as_list(value), _MAX_DIGESTS):
        if isinstance(raw, dict) and (number := number_in(raw.get("segment"))) is not None and number not in found:
            found[number] = SegmentDigest(
                number=number,
                topic=_short_line(raw.get("topic"), _MAX_TOPIC_LENGTH),
                brief=_short_line(raw.get("brief"), _MAX_BRIEF_LENGTH),
                tags=_tags(raw.get("tags")),
            )
    return tuple(found.values())


def _tags(value: Any) -> tuple[str, ...]:
    values = value.split(",") if isinstance(value, str) else _as_list(value)
    tags = (_short_line(tag, _MAX_TAG_LENGTH) for tag in islice(values, _MAX_TAGS))
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _short_line(value: Any, longest: int) -> str:
    try:
        line = " ".join(_one_line(part) for part in _as_list(value))
    except CandidateError:
        return ""
    line = _BULLET.sub("", line.strip())
    return line if len(line) <= longest else ""


def _narrative(value: Any) -> str:
    text_value = value.get("text") if isinstance(value, dict) else value
    return " ".join(text for part in _as_list(text_value) if says_anything(text := _one_line(part)))


def says_anything(text: str) -> bool:
    """Whether a text is more than punctuation: models write "-" or "…" where they have nothing to tell."""
    return any(unicodedata.category(character)[0] not in "PZ" for character in text)


def _as_list(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _one_line(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise CandidateError("unparseable")
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    return " ".join(clean(str(value)).split())


def _split_at_sentences(text: str) -> Iterator[str]:
    """The text, or its pieces if it is too long: cut at sentence ends, or at spaces if one sentence is too long."""
    if len(text) <= _MAX_ITEM_LENGTH:
        yield from [text] if text else []
        return
    piece = ""
    for sentence in sentences(text):
        for part in _split_at_spaces(sentence):
            if piece and len(piece) + 1 + len(part) > _MAX_ITEM_LENGTH:
                yield piece
                piece = part
            else:
                piece = f"{piece} {part}" if piece else part
    if piece:
        yield piece


def _split_at_spaces(sentence: str) -> Iterator[str]:
    rest = sentence
    while len(rest) > _MAX_ITEM_LENGTH:
        cut = rest.rfind(" ", 1, _MAX_ITEM_LENGTH)
        cut = cut if cut > 0 else _MAX_ITEM_LENGTH
        yield rest[:cut].strip()
        rest = rest[cut:].strip()
    if rest:
        yield rest


def statement_in(value: Any) -> str:
    """The text of an item, in one line. Raises ``CandidateError`` if the value is not a text."""
    return _BULLET.sub("", _one_line(value))


def sources_in(value: Any) -> tuple[int, ...]:
    """The numbers of messages that an item names, each once."""
    named = (_NUMBER.findall(one) if isinstance(one, str) else [one] for one in _as_list(value))
    return tuple(dict.fromkeys(seq for ones in named for one in ones if (seq := number_in(one)) is not None))


def number_in(value: Any) -> int | None:
    """A whole number, also as ``"12"``, ``12.0`` or ``"#12"``, which models write; ``None`` for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    found = _NUMBER.search(value) if isinstance(value, str) else None
    return int(found.group()) if found else None


def _entry_ids(value: Any) -> list[str]:
    return [found.upper() for found in _ENTRY_ID.findall(value)] if isinstance(value, str) else []


def _entry_id(value: Any) -> str:
    found = _ENTRY_ID.search(value) if isinstance(value, str) else None
    return found.group().upper() if found else ""


def _kept_passage_id(value: Any) -> str:
    found = _KEPT_PASSAGE_ID.fullmatch(value) if isinstance(value, str) else None
    return found[1].upper() if found else ""


def _snake_case_word(value: Any) -> str:
    return "_".join(value.lower().split()) if isinstance(value, str) else ""
