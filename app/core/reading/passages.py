"""Splits a span into passages: one sentence each, with its speaker, its words and the signs of its importance."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from app.core.model.conversation import Message
from app.core.reading.cues import BOILERPLATE, FILLER, HEADING, READING_TOOL, Cue, cues_of, verdict_of
from app.core.reading.labels import names_a_role, role_label
from app.core.reading.logs import is_log, log_lines
from app.core.reading.outcomes import Outcomes, outcomes
from app.core.reading.sentence import sentence_of
from app.core.reading.tool_data_lines import (
    OUTCOME_SEPARATOR,
    DataLine,
    is_call,
    lines_from_data,
    parse_line,
    parsed_dump,
    record_heads,
    terse_parts,
)
from app.core.text.corrections import with_corrections
from app.core.text.identifiers import Identifier
from app.core.text.json_data import arguments_in
from app.core.text.parts import as_text, own_parts
from app.core.text.pasted import before_paste
from app.core.text.patterns import compiled
from app.core.text.sentences import sentence_spans, sentences
from app.core.text.shortening import clip as clip  # noqa: PLC0414 - for who shows passages
from app.core.text.speakers import Label, label_of, labels_of, name_in

_MAX_NAME_WORDS: Final = 2  # the most words of a name in a label: "Doctor Livesey"
_MARKUP: Final = compiled(r"^(?:#{1,6}\s+|[-*+•]\s+|>\s+|\d{1,3}[.)]\s+)+|\*\*|__(?=\w)|(?<=\w)__")
_LIST_ITEM: Final = compiled(r"\s*(?:[-*+•|]|\d{1,3}[.)]|#{1,6})\s")
_MAX_SENTENCES: Final = 400  # per message: a pasted book is sampled, head and tail
_MAX_HEADED_STATEMENT_LENGTH: Final = 90  # characters
_JSON_PAIR: Final = compiled(r'"([^"\\\n]{1,40})"\s{0,4}:\s{0,4}"?([^"\\\n{}\[\],]{1,60})')
_MAX_JSON_PAIRS: Final = 8
_MAX_DUMP_LENGTH: Final = 4_000  # the most characters of a dump that are looked at
_MAX_CALL_LENGTH: Final = 240  # the most characters of a tool call
_MAX_ARGUMENT_LENGTH: Final = 80  # the most characters of one argument of a tool call
_CODE_LINE: Final = compiled(
    r"^\s{0,40}(?:(?:export|async|public|static) ){0,3}"
    r"(?:def|class|function|const|interface|type|func|fn|CREATE|SELECT)\b.{0,160}",
    re.MULTILINE,
)


class Passage(NamedTuple):
    """One sentence of a message, trimmed of filler, otherwise verbatim.

    A tuple, since a fold makes hundreds: a frozen dataclass with so many fields takes three times as long to make.
    """

    index: int  # type: ignore[assignment]  # it hides a method of tuples that is not used
    seq: int
    role: str
    speaker: str
    text: str
    core: str
    """The clauses of the text with its values, word for word; the whole text if it must not be shortened."""
    stems: frozenset[str]
    content: frozenset[str]
    """The stems of content words."""
    traits: tuple[float, ...]
    """The traits of the sentence by itself, in the order of ``sentence.TRAITS``."""
    cues: frozenset[Cue]
    identifiers: tuple[Identifier, ...]
    is_question: bool
    is_named: bool
    """Whether the speaker has a name, so that this is a talk between people."""
    turn: int
    """The position of the message within the span."""
    verdict: int = 0
    """1 if it begins with a yes, -1 with a no, else 0."""
    is_listed: bool = False
    """Whether it is an item of a list, a call that only reads, a dump of data, or only introduces the next sentence."""
    is_pasted: bool = False
    """Whether it is part of a long text that was hardly written for this talk: a document, a log, a dump."""
    is_held: bool = False
    """Whether its message is served word for word even after it is covered."""
    is_action: bool = False
    """Whether it is a call of a tool that changes something."""
    line: DataLine | None = None
    """The line of a tool's data that the passage is; ``None`` for sentences."""
    longer: DataLine | None = None
    """The line including the values that were removed because other passages have them."""
    values: frozenset[str] = frozenset()
    """Exact values other than names, in lower case."""
    result_seq: int | None = None
    """The message with the result that was put after a call."""

    @property
    def full_line(self) -> DataLine | None:
        """The line of a tool's data with all values, including those that other passages have."""
        return self.longer or self.line

    @property
    def text_with_speaker(self) -> str:
        """The text with its speaker."""
        return f"{self.speaker}: {self.text}"

    @property
    def core_with_speaker(self) -> str:
        """The core with its speaker."""
        return f"{self.speaker}: {self.core}"


def passages_of(messages: Sequence[Message], language: str, *, brief: bool = False) -> list[Passage]:
    """All passages of a span, in order; system messages, typed commands and boilerplate are left out.

    Args:
        messages: The span.
        language: The language of the labels of speakers without a name.
        brief: Whether cores are written without headings ("NOTE:").
    """
    labels = labels_of([(message.role, message.content) for message in messages])
    speakers = _names_of_roles(messages, labels)
    named = [
        label.name if label else _name_in_metadata(message) for message, label in zip(messages, labels, strict=True)
    ]
    names = frozenset(filter(None, named))
    results = outcomes(messages)
    outcomes_by_seq: defaultdict[int, str] = defaultdict(str)
    for seq, outcome in results.values():
        outcomes_by_seq[seq] += f"{outcome}\n"
    found: list[Passage] = []
    for turn, (message, label, own_name) in enumerate(zip(messages, labels, named, strict=True)):
        if message.role == "system" or message.is_command:
            continue
        name = own_name or speakers.get(message.role)
        content = message.content[label.end :] if label else message.content
        own_length = len(before_paste(content))
        is_dump = is_data(content) or _has_dumped_result(message)
        speaker = name or role_label(message.role, language)
        is_boilerplate = message.role == "assistant" and BOILERPLATE.search(content) is not None
        place = 0
        for raw, text, line in _sentences_and_lines(message, content, results, repeats=is_boilerplate):
            if line is None and text in outcomes_by_seq.get(message.seq, ""):
                continue  # the result was already put after its call
            place = max(place, content.find(raw, place))
            found.append(
                _passage(
                    text,
                    verdict=verdict_of(raw),
                    index=len(found),
                    message=message,
                    turn=turn,
                    speaker=speaker,
                    named=name is not None,
                    speakers=names,
                    is_listed=bool(_LIST_ITEM.match(raw) or READING_TOOL.match(text) or is_dump or is_boilerplate)
                    or text.endswith(":"),
                    is_pasted=own_length < len(content) and place >= own_length,
                    brief=brief,
                    line=line,
                    result_seq=_result_seq(text, message, results) if line else None,
                )
            )
    return found


def with_terse_data(passages: Sequence[Passage], relevance: Mapping[int, float]) -> list[Passage]:
    """The passages with each value of tools' data kept once, without its name: for data that would fill the state.

    Args:
        passages: The passages of the span.
        relevance: How much each passage's record was talked about: a value of several records stays with the one meant.
    """
    seen_values: set[str] = set()
    heads = record_heads(passage.text for passage in passages if passage.line is not None)
    found = list(passages)
    for passage in sorted(passages, key=lambda one: (one.seq, -max(relevance.get(one.index, 1.0), 1.0))):
        if passage.line is not None and not is_call(passage.text):
            lead, parts = terse_parts(passage.text, seen_values, heads=heads)
            text = f"{lead}{', '.join(parts)}" if parts else ""
            line = parse_line(text)
            found[passage.index] = passage._replace(text=text, core=text, line=line, longer=passage.line)
    return found


def _passage(
    text: str,
    *,
    index: int,
    message: Message,
    turn: int,
    speaker: str,
    named: bool,
    verdict: int,
    speakers: Collection[str],
    is_listed: bool,
    is_pasted: bool,
    brief: bool,
    line: DataLine | None,
    result_seq: int | None,
) -> Passage:
    cues = frozenset[Cue]() if line else cues_of(text)
    text = _without_heading(text) if brief and not line else text
    sentence = sentence_of(text).among(speakers)
    return Passage(
        index=index,
        seq=message.seq,
        role=message.role,
        speaker=speaker,
        text=text,
        core=text if line else sentence.core,
        stems=sentence.stems,
        content=sentence.content,
        traits=sentence.traits,
        cues=cues,
        identifiers=sentence.identifiers,
        is_question=line is None and sentence.is_question,
        is_named=named,
        turn=turn,
        verdict=verdict,
        is_listed=is_listed,
        is_pasted=is_pasted,
        is_held=message.is_protected,
        is_action=message.role == "assistant" and bool(message.parts) and _is_changing_call(text, message),
        line=line,
        values=sentence.values,
        result_seq=result_seq,
    )


def _result_seq(text: str, message: Message, results: Outcomes) -> int | None:
    calls = [(message.seq, str(part.get("id"))) for part in message.parts if part.get("type") == "tool_call"]
    own_outcomes = (results[one] for one in calls if one in results)
    return next((seq for seq, outcome in own_outcomes if text.endswith(f"{OUTCOME_SEPARATOR}{outcome}")), None)


def _without_heading(text: str) -> str:
    heading = HEADING.match(text)
    return text[heading.end() :] if heading else text


def _is_changing_call(text: str, message: Message) -> bool:
    calls = (part for part in message.parts if part.get("type") == "tool_call")
    names = {str(part.get("name", "")) for part in calls}
    return any(text.startswith(f"{name}(") for name in names if name and not READING_TOOL.match(name))


def _name_in_metadata(message: Message) -> str:
    name = name_in(message.metadata)
    if not name or names_a_role(name):
        return ""
    words = name.split()
    labels = (label_of(f"{' '.join(words[:count])}: ") for count in (_MAX_NAME_WORDS, 1))
    return next((label.name for label in labels if label), "")


def _names_of_roles(messages: Sequence[Message], labels: Sequence[Label | None]) -> dict[str, str]:
    names: defaultdict[str, set[str]] = defaultdict(set)
    for message, label in zip(messages, labels, strict=True):
        if label:
            names[message.role].add(label.name)
    # All messages of a role are by the same speaker, unless several people have the role.
    return {role: found.pop() for role, found in names.items() if len(found) == 1}


def _sentences_and_lines(
    message: Message, content: str, results: Outcomes, *, repeats: bool
) -> Iterable[tuple[str, str, DataLine | None]]:
    """Each sentence as written and in a tidy form; for data, its lines."""
    found = (content,) if _is_one_statement(content) else _sentences_with_corrections(content)
    if is_data(content):
        yield from _data_lines(content)
        found = ()
    elif message.role == "tool" and is_log(content):
        yield from _log_pieces(content)
        found = ()
    if len(found) > _MAX_SENTENCES:
        found = found[: _MAX_SENTENCES // 2] + found[-_MAX_SENTENCES // 2 :]
    if repeats:
        found = found[:1]  # the offline responder only repeats what others said
    for raw in found:
        text = _tidy(raw)
        if text:
            yield raw, text, None
    for part in own_parts(message.content, message.parts):
        yield from _part_pieces(part, message.seq, results)


def _sentences_with_corrections(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in with_corrections(text, sentence_spans(text)))


def _is_one_statement(content: str) -> bool:
    # Sentences under a heading mean little separately.
    heading = HEADING.match(content)
    return (
        heading is not None
        and len(content) - heading.end() <= _MAX_HEADED_STATEMENT_LENGTH
        and "\n" not in content.strip()
    )


def _part_pieces(part: Mapping[str, Any], seq: int, results: Outcomes) -> Iterable[tuple[str, str, DataLine | None]]:
    kind = part.get("type")
    if kind == "text":
        yield from (
            (text, text, None) for text in map(_tidy, _sentences_with_corrections(str(part.get("text", "")))) if text
        )
    elif kind == "tool_call":
        name = str(part.get("name", ""))
        text = f"{name}({clip(_arguments(part.get('arguments')), _MAX_CALL_LENGTH)})"
        if result := results.get((seq, str(part.get("id")))):
            text = f"{text}{OUTCOME_SEPARATOR}{result[1]}"
        yield text, text, parse_line(text)
    elif kind == "tool_result":
        content = as_text(part.get("content", ""))
        if is_data(content):
            yield from _data_lines(content)
        elif is_log(content):
            yield from _log_pieces(content)
        else:
            tidy_sentences = map(_tidy, sentences(content)[:_MAX_SENTENCES])
            yield from ((text, text, None) for text in tidy_sentences if text)


def _data_lines(text: str) -> Iterable[tuple[str, str, DataLine | None]]:
    data = parsed_dump(text)
    if data is not None:
        yield from ((line.text, line.text, line) for line in lines_from_data(data))
        return
    pairs = (
        f"{name.strip()}: {value.strip()}"
        for name, value in _JSON_PAIR.findall(text[:_MAX_DUMP_LENGTH])
        if value.strip()
    )
    summary = clip(", ".join(islice(dict.fromkeys(pairs), _MAX_JSON_PAIRS)), _MAX_CALL_LENGTH)
    if summary:
        yield summary, summary, None


def _log_pieces(text: str) -> Iterable[tuple[str, str, DataLine | None]]:
    for one in log_lines(text):
        if isinstance(one, DataLine):
            yield one.text, one.text, one
        elif prose := _tidy(one):
            yield one, prose, None


def _arguments(arguments: Any) -> str:
    found = arguments_in(arguments)
    if not isinstance(found, Mapping):
        return _one_line(as_text(found)) if found else ""
    return ", ".join(f"{name}={_one_line(_argument_text(value))}" for name, value in found.items())


def _argument_text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) and " " not in one for one in value):
        return " ".join(value)
    return as_text(value)


def _one_line(text: str) -> str:
    return clip(" ".join(text.split()), _MAX_ARGUMENT_LENGTH)


def is_data(text: str) -> bool:
    """Whether a text is a dump of JSON, without sentences."""
    stripped = text.strip()
    return stripped[:1] in {"{", "["} and stripped[-1:] in {"}", "]"} and stripped.count('"') >= 4  # noqa: PLR2004


def _has_dumped_result(message: Message) -> bool:
    return any(is_data(as_text(part.get("content", ""))) for part in message.parts if part.get("type") == "tool_result")


def _tidy(raw: str) -> str:
    if raw.lstrip().startswith(("```", "~~~")):
        return _informative_line_of_code(raw)
    text = _without_markup(" ".join(raw.replace("\x00", "").split()))
    filler = FILLER.match(text)
    trimmed = text[filler.end() :] if filler else text
    if trimmed != text and trimmed[:1].islower():
        trimmed = trimmed[:1].upper() + trimmed[1:]
    final = trimmed.strip(" |") or text
    return "" if final[:1] == "[" and final[-1:] == "]" else clip(final)


def _without_markup(text: str) -> str:
    may_have_some = not text[:1].isalpha() or "**" in text or "__" in text
    return _MARKUP.sub("", text) if may_have_some else text


def _informative_line_of_code(fence: str) -> str:
    match = _CODE_LINE.search(fence)
    lines = [
        line.strip()
        for line in fence.splitlines()[1:]
        if line.strip() and not line.lstrip().startswith(("```", "~~~", "#", "//"))
    ]
    best = match.group().strip() if match else (lines[0] if lines else "")
    return clip("`" + " ".join(best.replace("`", "").split())[:160] + "`") if best else ""
