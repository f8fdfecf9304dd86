"""Finds how much of a history that a client sends again is stored already: its longest stored prefix.

Clients of stateless APIs send the whole history with every request. Messages are the same if their roles and words are;
differences in spaces and Unicode forms are ignored. If both have names, these have to be the same too: a client may
leave names out, and the service's own replies have none. A client may also leave out the data that came with a user's
words; but data that is not stored with these words makes another message of them. So does an address, as long as no
reply follows: the answer would be about another picture. Later it may be another one, since some are signed anew.
An element (``<reminder>…</reminder>``) that a user's message ends with may be missing once others follow: some agents
add one for one request only.

A client may have only the beginning of a reply, because it stopped reading. Stored messages that it may never have seen
are skipped if they do not fit: the service's own tool calls and their results, a reply that was stopped, a typed
command, a system message, an erased message. The message of a failed turn that nobody answered is skipped too, if the
history continues with something else: its user took it back. Superseded replies are ignored.

Calls and results that stand together may stand in any order: a client may send results as they come, and later in that
of the calls; or join the calls of several steps that have no words between them, with all results after these.

A frontend may ask about a message again with a hint, such as "more concise", and show the new reply in the place of the
first. If both requests named that message, the first reply and the hint are skipped if they do not fit. So they are if
only the hint does not: then the new reply says the same as the first, or its beginning.

Any words may be those of an erased message. If that does not lead on, the client may have no erased messages, and has
others in their place; and what it asks in the place of the last stored message, which is erased, is new.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from app.core.model.conversation import Message, MessageText
from app.core.text.contents import data_hash, is_data_url
from app.core.text.parts import BETWEEN_TEXTS, Part, as_text, own_content, own_parts
from app.core.text.speakers import name_in

MOST_TOGETHER: Final = 256
"""How many calls and results that stand together may stand in another order."""
QUESTION: Final = "question_id"
"""The key in a user message's metadata of the client's id of the message that its request asked about."""
Kind = Literal["user", "assistant", "system", "call", "result"]
_OF_TOOLS: Final[Collection[Kind]] = frozenset({"call", "result"})
"""The kinds of lines whose words are the id of a call."""
ANSWERING: Final[Collection[Kind]] = frozenset({"assistant", *_OF_TOOLS})
"""The kinds of lines that answer what was said before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One text, tool call or result of a message."""

    kind: Kind
    words: str
    """The normalised words; for a call or its result, the id of the call."""
    message: int
    """The number of its message in its history."""
    name: str = ""
    """The name of its speaker; empty if it is not given."""
    attached: frozenset[str] = frozenset()
    """The hashes of the data that came with a user's words."""
    addresses: frozenset[str] = frozenset()
    """The addresses that came with a user's words; a signed one may be new each time."""
    content: str = ""
    """A user's words as they were written, with what separates the texts of one message; what a tool returned, with the
    marks of its pictures."""
    optional: bool = False
    """Whether it is stored and the client may never have seen it."""
    matches_any_words: bool = False
    """Whether the message is erased, so that any words match it."""
    may_be_regenerated: bool = False
    """Whether it is stored and the end of an answer, for which the client may ask again."""
    is_step: bool = False
    """Whether it is stored together with calls: a client without the calls has it as the beginning of the reply."""
    question: str = ""
    """Which message of the client's the request with these stored words asked about; empty if it did not say so."""
    may_be_withdrawn: bool = False
    """Whether it is stored and came with a failed turn: the client may have dropped it and said something else."""
    is_brought: bool = False
    """Whether it is the stored result of a tool that the client ran."""


def lines_of(role: str, content: str, parts: Sequence[Part], message: int, name: str = "") -> Iterator[Line]:
    """The texts, tool calls and results of a message, one by one.

    Args:
        role: ``user``, ``assistant``, ``system`` or ``tool``.
        content: Its text.
        parts: Texts, calls, results, media.
        message: Its number.
        name: The name of its speaker, if it is given.
    """
    calls = [str(part.get("id")) for part in parts if part.get("type") == "tool_call"]
    results = [part for part in parts if part.get("type") == "tool_result"]
    words = _comparable_words(role, content, parts)
    if role != "tool" and (words or not (calls or results)):
        kind: Kind = "user" if role == "user" else "assistant" if role == "assistant" else "system"
        shown = parts if kind == "user" else ()
        yield Line(
            kind=kind,
            words=words,
            message=message,
            name=normalised(name),
            attached=_attached_data(shown),
            addresses=_addresses(shown),
            content=content if kind == "user" else "",
            is_step=bool(calls),
        )
    for call in calls:
        yield Line(kind="call", words=call, message=message)
    media = [_media_mark(part) for part in parts if part.get("type") == "media"] if results else ()
    for result in results:
        returned = " ".join((as_text(result.get("content", "")), *media))
        yield Line(kind="result", words=str(result.get("tool_call_id")), message=message, content=returned)


def _stored_lines(
    message: Message | MessageText, unanswered: Collection[int], own_tools: Collection[str]
) -> Iterator[Line]:
    unseen, erased, stopped = message.is_command, message.status == "erased", message.status == "interrupted"
    if erased and any(part.get("type") == "tool_call" for part in message.parts):  # only the ids of its calls are left
        yield Line(kind="assistant", words="", message=message.seq, optional=True, matches_any_words=True, is_step=True)
    results = [part for part in message.parts if part.get("type") == "tool_result" and not erased]
    brought = {str(part.get("tool_call_id")) for part in results if part.get("name") not in own_tools}
    for line in lines_of(message.role, message.content, message.parts, message.seq, name_in(message.metadata)):
        yield replace(
            line,
            optional=unseen or erased or stopped or line.is_step or line.kind in {*_OF_TOOLS, "system"},
            matches_any_words=erased,
            may_be_regenerated=line.kind == "assistant" and not (unseen or erased or line.is_step),
            question=str(message.metadata.get(QUESTION) or "") if line.kind == "user" else "",
            may_be_withdrawn=line.kind == "user" and message.seq in unanswered,
            is_brought=line.kind == "result" and line.words in brought,
        )


def _comparable_words(role: str, content: str, parts: Sequence[Part]) -> str:
    own_text = own_content(role, content, parts)
    texts = [
        own_text,
        *(str(part.get("text", "")) for part in own_parts(own_text, parts) if part.get("type") == "text"),
    ]
    found = normalised(" ".join(texts))
    return found or " ".join(_media_mark(part) for part in parts if part.get("type") == "media")


def _attached_data(parts: Sequence[Part]) -> frozenset[str]:
    return frozenset(found for part in parts if part.get("type") == "media" and (found := data_hash(part)))


def _addresses(parts: Sequence[Part]) -> frozenset[str]:
    urls = (str(part.get("url") or "") for part in parts if part.get("type") == "media")
    return frozenset(url for url in urls if url and not is_data_url(url))


def normalised(text: str) -> str:
    """A text with composed letters and single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _media_mark(part: Part) -> str:
    url = str(part.get("url") or "").partition("?")[0]  # what follows may sign it, and is new each time
    return f"media:{hashlib.sha256(url.encode()).hexdigest() if url else data_hash(part)}"


@dataclass(slots=True)
class _Steps:
    """Compares a given line with the steps of a reply before its last words; no text is read twice."""

    _taken: int = 0
    """How many characters of the given line the steps take up, with a space after each."""
    _differs: bool = False
    _is_longer: bool = False
    """Whether the given line ends within the steps."""

    def add(self, words: str, given: str) -> None:
        """Add one more step."""
        rest = len(given) - self._taken
        if self._differs or self._is_longer:
            return
        if rest <= len(words):
            self._is_longer = given.startswith(words[:rest], self._taken)
            self._differs = not self._is_longer
        elif given.startswith(f"{words} ", self._taken):
            self._taken += len(words) + 1
        else:
            self._differs = True

    def end_with(self, words: str, given: str) -> bool:
        """Whether the given line consists of the steps and these words."""
        is_there = not self._differs and not self._is_longer and len(given) - self._taken == len(words)
        return is_there and given.startswith(words, self._taken)

    def begin_with(self, words: str, given: str) -> bool:
        """Whether the steps and these words begin with the given line."""
        rest = len(given) - self._taken
        if self._differs or self._is_longer:
            return self._is_longer
        return rest <= len(words) and given.startswith(words[:rest], self._taken)


def _is_element(text: str) -> bool:
    """Whether a text is one element of markup, as programs write it."""
    text = text.strip()
    name = text[1:].partition(">")[0]
    is_named = text.startswith("<") and name.replace("-", "_").isidentifier()
    return is_named and text.partition(f"</{name}>")[1:] == (f"</{name}>", "")


@dataclass(slots=True)
class Reconciliation:
    """Compares a given history with the stored one, message by message, in time linear in the stored history."""

    given: list[Line]
    """The lines of the history that the client sends, in order; calls and results are put into their stored order."""
    unanswered: Collection[int] = frozenset()
    """The numbers of the stored messages that a failed turn brought, and that no other turn answered."""
    own_tools: Collection[str] = frozenset()
    """The names of the tools that the service runs: a client need not have their calls."""
    _position: int = 0
    _has_diverged: bool = False
    _is_answered: bool = False
    """Whether a stored reply was read after the end of the given history."""
    _steps: _Steps = field(default_factory=_Steps)
    _ends_with_step: bool = False
    """Whether the given line that was read last is a whole step of a reply, without its calls: its client may have
    stopped reading there."""
    _erased_from: int | None = None
    """How many given lines were read before the erased messages that were read last; ``None`` once others follow."""
    _question: str = ""
    """What the stored words of a user that were read last asked about."""
    _replies_from: int = 0
    """How many given lines were read up to these words, before the replies to them."""
    _returned_to: int | None = None
    """The place of the reply to a hint that was skipped, which has to follow; ``None`` if none was skipped."""
    _awaits_hint: bool = False
    """Whether a stored reply did not fit, so that only a hint may follow with which the client asked again."""
    brings_other_results: bool = False
    """Whether the results that were read last, after the last call, have one that is stored with another content."""
    lacks_results: bool = False
    """Whether results that the client brought are stored after the end of the given history: it is an earlier one."""
    _last_reply: int = field(init=False)
    """The place of the last given reply, call or result; 0 if there is none."""

    def __post_init__(self) -> None:
        """Look for the last line that answers another."""
        places = reversed(range(len(self.given)))
        self._last_reply = next((one for one in places if self.given[one].kind in ANSWERING), 0)

    def read(self, stored: Iterable[Message | MessageText]) -> bool:
        """Read further stored messages; false once the two histories differ."""
        for message in stored:
            if message.status == "superseded":  # the reply that replaced it may say the same
                self._steps = _Steps()
                continue
            for line in _stored_lines(message, self.unanswered, self.own_tools):
                self._read_line(line)
                if self._has_diverged:
                    return False
        return True

    @property
    def diverged(self) -> bool:
        """Whether the stored history has something that the given one does not have at this place."""
        lacks_reply = self._awaits_hint or self._returned_to == self._position
        return self._has_diverged or self._is_answered or lacks_reply

    @property
    def new_from(self) -> int | None:
        """The number of the first given message that is not stored.

        ``None`` if the histories differ, if nothing is new, or if only a part of a message is stored.
        """
        if self.diverged:
            return None
        if self._position == len(self.given):
            return self.given[-1].message if self._asks_in_place_of_erased else None
        following = self.given[self._position].message
        if any(line.message >= following for line in self.given[: self._position]):
            return None
        return following

    @property
    def is_all_stored(self) -> bool:
        """Whether the stored history is exactly the given one."""
        return not self.diverged and self._position == len(self.given) and not self._asks_in_place_of_erased

    @property
    def asks_for_new_reply(self) -> bool:
        """Whether only the last stored reply is missing in the given history: its client wants another, or lost it."""
        last = self.given[-1].kind if self.given else None
        asks = last == "user" or (last == "result" and not self.brings_other_results and not self.lacks_results)
        return asks and self._is_answered and not self._has_diverged

    @property
    def _asks_in_place_of_erased(self) -> bool:
        """Whether the given history ends with a user's words, and at its end only erased messages are stored."""
        return self._ends_with_erased and self.given[-1].kind == "user"

    @property
    def _ends_with_erased(self) -> bool:
        """Whether the given lines that were read last were taken for those of erased messages."""
        return self._erased_from is not None and self._erased_from < self._position

    def _read_line(self, line: Line) -> None:
        is_hint = bool(self._question) and line.question == self._question
        if self._awaits_hint:
            self._has_diverged = not is_hint
            self._awaits_hint = False
            return
        if line.matches_any_words and self._erased_from is None:
            self._erased_from = self._position
        if self._has_read(line):
            return
        if is_hint and not self._is_answered:  # what was taken for the first reply is the one to the hint
            self._position = self._returned_to = self._replies_from
            self._erased_from = None
            self._steps = _Steps()
        elif self._ends_with_erased:  # once more, as if the client had no erased message
            self._position = self._erased_from or 0
            self._erased_from = None
            self._has_diverged = not self._has_read(line)
        elif line.may_be_regenerated and self._question:
            self._awaits_hint = True
            self._steps = _Steps()
        else:
            self._has_diverged = True

    def _has_read(self, line: Line) -> bool:
        goes_on = self._goes_on_with(line)
        if goes_on and line.kind == "user":
            self._question, self._replies_from = line.question, self._position
        return goes_on

    def _goes_on_with(self, line: Line) -> bool:
        """Whether the given history has that line at its present place, or may leave it out."""
        if line.kind in _OF_TOOLS:
            self._bring_forward(line)
        given = self.given[self._position] if self._position < len(self.given) else None
        self._ends_with_step &= line.kind in ANSWERING
        if given is not None and self._is_same(line, given):
            self._ends_with_step = line.is_step and not self._has_call_after()
            self.lacks_results = False
            self.brings_other_results &= line.kind == "result"
            self.brings_other_results |= line.kind == "result" and given.content != line.content
            self._position += 1
            self._steps = _Steps()
        elif self._ends_with_step:
            return True
        elif given is None and line.may_be_regenerated and not self._ends_with_erased:
            self._is_answered = True
        elif line.optional:
            self.lacks_results |= given is None and line.is_brought
            if line.is_step and given is not None and not line.matches_any_words:
                self._steps.add(line.words, given.words)
            return True
        else:
            return given is not None and line.may_be_withdrawn
        if not line.matches_any_words:
            self._erased_from = None
        return True

    def _bring_forward(self, line: Line) -> None:
        """Bring that call or result to the present place if it stands among the calls and results there."""
        for place in range(self._position, min(self._position + MOST_TOGETHER, len(self.given))):
            given = self.given[place]
            if given.kind not in _OF_TOOLS:
                return
            if (given.kind, given.words) == (line.kind, line.words):
                if place > self._position:
                    self.given.insert(self._position, self.given.pop(place))
                return

    def _is_same(self, line: Line, given: Line) -> bool:
        if line.kind != given.kind:
            return False
        if line.matches_any_words:
            return not line.is_step or self._has_call_after()
        if line.name and given.name and line.name != given.name:
            return False
        if line.kind != "assistant":
            has_words = given.words == line.words or self._lacks_last_element(line, given)
            is_same = has_words and given.attached <= line.attached
            return is_same and (given.addresses <= line.addresses or self._may_be_signed_anew(line))
        if given.words == line.words or self._steps.end_with(line.words, given.words):
            return True
        may_be_less = bool(given.words) and not line.is_step
        return may_be_less and (line.words.startswith(given.words) or self._steps.begin_with(line.words, given.words))

    def _lacks_last_element(self, line: Line, given: Line) -> bool:
        """Whether others follow the given words, which are a stored message without the element at its end.

        Any other text may be one that its user has deleted: then the history is another one.
        """
        is_last = self._position == len(self.given) - 1
        if is_last or not given.words or not line.content or not line.words.startswith(given.words):
            return False
        texts, length = line.content.split(BETWEEN_TEXTS), 0
        for text in texts:
            words = normalised(text)
            length += len(words) + bool(words and length)
            if length >= len(given.words):
                return length == len(given.words) and _is_element(line.words[length:])
        return False

    def _may_be_signed_anew(self, line: Line) -> bool:
        return self._position < self._last_reply and not line.may_be_withdrawn

    def _has_call_after(self) -> bool:
        following = self.given[self._position + 1 : self._position + 2]
        return any(line.kind == "call" for line in following)
