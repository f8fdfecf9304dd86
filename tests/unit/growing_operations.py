"""The pure core of each operation on texts from outside, as work whose growth can be measured.

Each is given one text: as one message, or as many short ones. What a cache remembers is forgotten before each run.
"""

from __future__ import annotations

import functools
import gc
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from app.core.anchors.detect import detect
from app.core.context.assembly import assemble
from app.core.continuity.comparing import Exam
from app.core.model.conversation import Layout, Message
from app.core.model.model_io import ContextMessage, DetailRequest
from app.core.model.policies.goals import states_goal
from app.core.model.policies.policy import SegmentBy
from app.core.model.redaction import redact
from app.core.model.schemas import SESSION
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.offline_responder import respond
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.recall_decision import decide_recall
from app.core.retrieval.rendering import Recall, passages_in, recalled_in, split_elements, with_elements_before
from app.core.retrieval.search import has_phrases, query_of, rank_messages, snippet
from app.core.segments.describing import describe
from app.core.segments.extractive import level_text
from app.core.segments.message_analysis import analysis_of
from app.core.segments.segmentation import split_into_segments
from app.core.state.erasing import (
    ErasedTexts,
    RemainingMessages,
    entries_without_erased,
    quotes_erased,
    summary_without_erased,
    suspicious_entries,
)
from app.core.summarizer.candidate import CandidateError, parse_candidate
from app.core.summarizer.framing import frame_messages
from app.core.summarizer.offline.extractive import compress, digest
from app.core.summarizer.system_context import system_context
from app.core.text.elision import elide
from app.core.text.escaping import clean, escape, escape_block, unescape
from app.core.text.language import detect as language_in
from app.core.text.memo import forget
from app.core.text.token_counts import estimate_text, weigh
from app.core.validation.damage import RecordedVersion, find_damage, mended_entries
from app.core.validation.detail_checks import check_detail
from app.core.validation.excuses import is_excuse
from app.core.validation.gate import judge
from app.core.validation.health import is_cut_off
from app.storage.repositories.term_keys import keys_of
from app.usecases.compaction.commands import compact_command
from bench.ranking import choose
from bench.replay import Replay
from tests.builders import material, policy_of
from tests.builders import message as built
from tests.unit.growth import Pump
from tests.unit.pumps import GENERIC
from tests.unit.talk import answer, entry, fact, message, proposal, request

_TARGET: Final = 0.01
"""The approximate seconds that an operation takes on its largest text, if that text is ordinary."""
_FIRST: Final = 1_000  # characters
_MAX_LENGTH: Final = 2_000  # more, since a text on which an operation ends early says little about others
_SHORT: Final = 160  # characters of each message, if a text becomes many messages
_POLICY: Final = policy_of(context_window=4_000, protect=[])
_SAID: Final = (
    "We decided to move room {n} to the port of Turku on {d} May 2027 for {n},250 euros. ",
    "Why did Clara not call back about order HX-{n}07? I never got the invoice. ",
    "Мы решили перенести встречу номер {n} на {d} мая, договор № {n}-Б уже подписан. ",
    "第{n}批货物已发往{d}号码头，订单是 HX-{n}07。",
    "src/app/part_{n}.py:{d}: error: name_{n} is not defined\n",
    '{{"id": "item_{n}", "price": {n}.50, "day": "2027-05-{d}"}}\n',
)


@dataclass(frozen=True, slots=True)
class Ordinary(Pump):
    """A text of the kind that people and tools write, in which no two sentences are alike."""

    def text(self, length: int) -> str:
        """A text of about this length."""
        told: list[str] = []
        size = number = 0
        while size < length:
            told.append(self.unit.format(n=number + 10, d=number % 27 + 1))
            size += len(told[-1])
            number += 1
        return "".join(told)[:length]


@dataclass(frozen=True)
class Operation:
    """One operation on one text."""

    name: str
    act: Callable[[str], object]
    every: bool
    """Whether all texts are tried, or those that have usually found something."""
    first: int = 0
    share: int = 1
    """One in so many of the texts is tried, from ``first`` on."""

    @cached_property
    def largest(self) -> int:
        """The length that takes about the same time for every operation, found with an ordinary text."""
        length, pump = _FIRST, Ordinary("", "".join(_SAID))
        while length < _MAX_LENGTH:
            began = time.thread_time()
            self.run(pump.text(length))
            if time.thread_time() - began > _TARGET / 2:
                break
            length *= 2
        return length * (4 if self.every else 1)

    @property
    def most(self) -> int:
        return 8 * self.largest

    def pumps(self) -> Sequence[Pump]:
        ordinary = [Ordinary("", one) for one in _SAID]
        return [*ordinary, *OWN, *(GENERIC if self.every else ())][self.first :: self.share]

    def run(self, text: str) -> object:
        forget()
        for remembered in _caches():
            remembered.cache_clear()
        return self.act(text)


@functools.cache
def _caches() -> tuple[Any, ...]:
    """The caches of the app other than its readings of texts: those of words, stretches and policies."""
    every = (one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper))
    return tuple(one for one in every if str(getattr(one, "__module__", "")).startswith("app.") and _by_text(one))


def _by_text(cached: Any) -> bool:
    """Whether a cache is bounded, as those for texts are; tables are read once and kept."""
    return cached.cache_parameters()["maxsize"] is not None


OWN: Final = (
    Pump("/compact x", " ", "y"),
    Pump("port ", "н", ""),
    Pump("total 3\nfile one 12\na", "_a", "@\nfile two 13\n"),
    Pump('<recalled of="earlier messages, verbatim">\n', '<message role="user">\n', "\n</recalled>"),
    Pump("", "１", "x"),
    Pump("We decided ", "-eyJ", ""),
    Pump("", "@\n", ""),
    Pump("", "password: ", ""),
    Pump("", "<session_state>", ""),
    Pump("", "\n```\n", ""),
    Pump("", "Note: a. ", ""),
    Pump("", "No. ", ""),
    Pump("", '{"a":[', ""),
    Pump('[{"id":"', "a_", '@"}]'),
    Pump("- ", "a b-c/d_e.f@g ", ""),
    Pump("if ", "a b, ", "never"),
)
"""Texts that were slow once, or that look as if they might be."""


def operations(argument: Any) -> list[Operation]:
    """All operations, or those of one part; each with one text in so many, which differ between operations."""
    part, parts, share = argument["part"], argument["parts"], argument["share"]
    return [
        Operation(name, act, bool(argument["every"]), number % share, share)
        for number, (name, act) in enumerate(list(ACTS.items())[part::parts])
    ]


def _many(text: str) -> list[Message]:
    """The text as short messages, of user and assistant in turns."""
    pieces = [text[place : place + _SHORT] for place in range(0, len(text), _SHORT)] or [""]
    return [message(seq, piece, "user" if seq % 2 else "assistant") for seq, piece in enumerate(pieces, start=1)]


def _result(text: str) -> list[Message]:
    """The text as the result of a tool."""
    call = {"type": "tool_call", "id": "c", "name": "look", "arguments": {"at": text[:_SHORT]}}
    return [
        message(1, "Look it up, please."),
        message(2, "", "assistant", parts=[call]),
        message(3, "", "tool", parts=[{"type": "tool_result", "tool_call_id": "c", "content": text}]),
    ]


def _data(text: str) -> list[Message]:
    """The text as JSON values that a user pastes."""
    values = [{"id": text[place : place + 46]} for place in range(0, len(text), 46)]
    return [message(1, json.dumps(values, ensure_ascii=False))]


def _append(text: str) -> None:
    one = message(1, text)
    weigh("user", text)
    detect(one)
    keys_of([one])
    states_goal(text)


def _sources(messages: Sequence[Message]) -> list[Source]:
    return [Source(seq=one.seq, role=one.role, text=one.content, at=one.created_at, tokens=60) for one in messages]


def _corpus(messages: Sequence[Message]) -> Corpus:
    return Corpus(_sources(messages))


def _recall(messages: Sequence[Message], asked: str) -> None:
    corpus = _corpus(messages)
    question = completed_question(asked, corpus)
    decide_recall(asked, question, corpus, served=["nothing"], seqs=[])
    choose(corpus, question, room=500)


def _search(text: str, messages: Sequence[Message]) -> None:
    query = query_of(text)
    rank_messages(query, _sources(messages))
    has_phrases(messages[0].content, query.phrases)
    snippet(messages[0].content, query)


def _fold(messages: Sequence[Message]) -> None:
    compress(request(messages))


def _asked_after(messages: Sequence[Message]) -> None:
    exam = Exam(messages, anchors=[anchor for one in messages for anchor in detect(one)])
    exam.compare({"logos": [one.content for one in messages]}, Layout(text="{}", tokens=0))


def _segments(messages: Sequence[Message]) -> None:
    for stretch in split_into_segments(messages, SegmentBy(by="topic")):
        described = describe(stretch)
        for level in ("L1", "L2", "L3"):
            level_text(level, stretch, described, locale="en")


def _replay(text: str) -> None:
    """Append the text message by message and fold it, as the service does, but in memory."""
    talk = Replay.in_window(4_000)  # so small that the smaller texts are folded too
    for one in _many(text):
        talk.say(one.role, one.content)
    talk.fold()


def _gate(told: str, span: Sequence[Message]) -> None:
    facts = [fact(told[place : place + _SHORT], 1) for place in range(0, len(told), _SHORT)]
    judge(proposal(answer(told, facts)), request(span, entry("F1", told[:_SHORT])))
    try:
        parse_candidate(told, SESSION)
    except CandidateError:
        return


def _detail(told: str, span: Sequence[Message]) -> None:
    asked = DetailRequest(topic="t", messages=tuple(span), target_tokens=500, max_output_tokens=900)
    check_detail(proposal(told), asked)


def _context(text: str) -> None:
    messages = [built(seq, one.content) for seq, one in enumerate(_many(text), start=1)]
    state = {"logos": [text[:_SHORT]], "pathos": [], "abstract": [], "conversation_summary": text}
    given = material(messages, policy=_POLICY, state=state, boundary=len(messages) // 2)
    recall = Recall(question=text[:_SHORT], corpus=_corpus(messages), is_explicit=True)
    assemble(replace(given, recall=recall), digest=digest)


def _texts(text: str) -> None:
    redact(text)
    unescape(escape(text))
    escape_block(clean(text))
    elide(text, 200)
    estimate_text(text)
    language_in(text)
    frame_messages([message(1, text)], max_tokens=500)
    system_context(text, max_tokens=500)


def _offline(text: str) -> None:
    list(recalled_in(split_elements(text)[0]))
    list(passages_in(text))
    respond((ContextMessage(role="user", content=with_elements_before("", "", text)),))


def _erase(text: str) -> None:
    erased = ErasedTexts([text], {1})
    others = RemainingMessages({one.seq: one.content for one in _many(text)}, erased)
    entries = [entry("F1", text[:_SHORT], seqs=[2]), entry("F2", text, seqs=[2])]
    entries_without_erased(entries, erased, others)
    suspicious_entries(entries, erased)
    summary_without_erased(f"x\n- {text}", erased, others)
    quotes_erased(text[:1_000], erased, others)


def _damage(text: str) -> None:
    said = {one.seq: one.content for one in _many(text)}
    parts = [text[place : place + _SHORT] for place in range(0, len(text), _SHORT)]
    entries = [entry(f"F{n}", part, seqs=[n]) for n, part in enumerate(parts, start=1)]
    made = RecordedVersion(version=1, boundary_seq=1, entries=(*entries, entry("N1", text)), changed_texts=len(entries))
    mended_entries(made.entries, find_damage([made], said), version=2)


def _ends(text: str) -> None:
    is_cut_off(text)
    is_excuse(text)


ACTS: Final[dict[str, Callable[[str], object]]] = {
    "append one message": _append,
    "append and fold many": _replay,
    "fold one message": lambda text: _fold([message(1, text), message(2, "I see.", "assistant")]),
    "fold many messages": lambda text: _fold(_many(text)),
    "fold what a tool gave": lambda text: _fold(_result(text)),
    "fold data that a user pasted": lambda text: _fold(_data(text)),
    "read for a segment": lambda text: analysis_of(_result(text), "en").passages,
    "continuity of many messages": lambda text: _asked_after(_many(text)),
    "continuity of one message": lambda text: _asked_after([message(1, text)]),
    "segments of many messages": lambda text: _segments(_many(text)),
    "segments of one message": lambda text: _segments([message(1, text)]),
    "digest": lambda text: digest(_many(text), 300),
    "gate, a long answer": lambda text: _gate(text, _many("We met in Graz. " * 20)),
    "gate, a long span": lambda text: _gate("We met in Graz in May.", _many(text)),
    "gate, both": lambda text: _gate(text, [message(1, text)]),
    "gate, the detail of a segment": lambda text: _detail(text, _many(text)),
    "whether a text ends": _ends,
    "texts as they are served": _texts,
    "context": _context,
    "recall from one message": lambda text: _recall([message(1, text), message(2, "ok")], "When did Clara call?"),
    "recall from many": lambda text: _recall(_many(text), "When did Clara call about room 12?"),
    "recall with a long question": lambda text: _recall(_many("Clara called about room 12. " * 20), text),
    "search for a long text": lambda text: _search(text[:1_000], _many(text)),
    "search one message": lambda text: _search('clara "room 12"', [message(1, text)]),
    "answer without a model": _offline,
    "erase": _erase,
    "examine a damaged state": _damage,
    "typed command": compact_command,
}


def broken(argument: Any) -> list[Operation]:
    """For the control: compare every 64th character with all characters of the text."""
    del argument
    return [
        Operation("sound", str.split, every=False),
        Operation("broken", lambda text: [sum(map(one.__eq__, text)) for one in text[::64]], every=False),
    ]
