"""Keeps results that were computed from a text, so that the next caller does not compute them again.

A message is read many times: for anchors, state, segments, recall and checks. These call the same pure functions with
the same text. ``memoized`` keeps the results, by function and arguments. A result never has to be invalidated, since
the result of a function for a text does not change while a process runs. A kept result is called a *reading*.

* **Bounded.** All results together stay within ``MAX_BYTES`` bytes, whatever comes in from outside. Each time half of
  that is full, results that nobody asked for since the last time are dropped, a few with each new one, since dropping
  thousands at once would hold up the event loop. (``word_memo`` has a bound of its own.)
* **Private.** A result is only found by a caller that has the text itself, so nothing of another tenant or of an
  erased message can be found. ``forget`` drops all results of a process when texts are erased.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from inspect import signature
from threading import Lock
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)

MAX_BYTES: Final = 64_000_000
"""The most bytes that a process keeps, estimated from the lengths of the texts."""
READING_GROWTH: Final = 8
"""Estimated bytes of a reading such as words, values or sentences, for each byte of its text in UTF-8, the text
included."""
FIGURE_GROWTH: Final = 2
"""Estimated bytes, for each byte of its text, of a reading that is a number, a flag or another form of the text."""
_ENTRY: Final = 400
"""Bytes that every reading takes in addition."""
_MAX_READING_BYTES: Final = MAX_BYTES // 16
"""The most bytes of one reading: one document must not push out everything else."""
_MAX_BYTES_OF_MANY: Final = MAX_BYTES // 8
"""The most bytes of one reading of many texts, such as a conversation."""
MAX_WORD_LENGTH: Final = 64
"""The most characters of a word that is remembered."""
_WORDS: Final = 65_536
_DROPPED_AT_ONCE: Final = 8
"""How many old readings are dropped with each new one: more than are added, so that the bound holds."""
_NOTHING: Final = object()
_SAME_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")


class _Readings:
    """The readings of one function: new ones, and those that were new before ``new`` was last emptied."""

    __slots__ = ("new", "old")

    def __init__(self) -> None:
        self.new: dict[Hashable, Any] = {}
        self.old: dict[Hashable, Any] = {}


class Memo:
    """The readings of all functions, within one bound."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._of_functions: list[_Readings] = []
        self._leaving: list[dict[Hashable, Any]] = []
        self._lock = Lock()

    def register(self) -> _Readings:
        """Register a function, and return where its readings are kept."""
        found = _Readings()
        self._of_functions.append(found)
        return found

    def keep(
        self,
        readings: _Readings,
        key: Hashable,
        reading: object,
        size: int,
        *,
        replaced_size: int = 0,
        largest: int = _MAX_READING_BYTES,
    ) -> None:
        """Keep a reading of ``size`` bytes, unless it is larger than ``largest``.

        ``replaced_size`` is the size of the reading that it replaces. When the new readings reach half of the bound,
        the old ones are dropped, and the new ones become the old ones.
        """
        if size > largest:
            self._size -= replaced_size
            return
        readings.new[key] = reading
        # No lock is needed here, and it would double the cost: nothing is called, so no other thread can interrupt.
        self._size += size - replaced_size
        if self._size > self._most // 2:
            with self._lock:
                if self._size > self._most // 2:
                    self._leaving = [one.old for one in self._of_functions if one.old]
                    for one in self._of_functions:
                        one.old, one.new = one.new, {}
                    self._size = 0
        if self._leaving:
            self._drop_some_old()

    def _drop_some_old(self) -> None:
        leaving = self._leaving
        for _ in range(_DROPPED_AT_ONCE):
            try:
                leaving[-1].popitem()
            except KeyError:  # this function has no old readings left
                leaving.pop()
            except IndexError:  # another thread took the last one
                return

    def forget(self) -> None:
        """Drop all readings."""
        with self._lock:
            self._leaving = []
            for one in self._of_functions:
                one.old, one.new = {}, {}
            self._size = 0

    def __len__(self) -> int:
        return sum(len(one.new) + len(one.old) for one in self._of_functions) + sum(map(len, self._leaving))


_MEMO: Final = Memo(MAX_BYTES)


def memoized(growth: int = READING_GROWTH, memo: Memo = _MEMO) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep the results of a pure function. Nobody may change a result.

    Args:
        growth: The estimated bytes of a result for each byte of the texts among the arguments, these texts included.
        memo: The memo that keeps the results.
    """

    def keeping(function: Callable[P, R]) -> Callable[P, R]:
        readings, is_of_one = memo.register(), len(signature(function).parameters) == 1
        make: Callable[[Any], R] = function if is_of_one else lambda key: function(*key[0], **dict(key[1]))

        def read(key: Any) -> Any:
            found = readings.new.get(key, _NOTHING)
            if found is _NOTHING:
                found = readings.old.get(key, _NOTHING)
                if found is _NOTHING:
                    found = make(key)
                size = len(key) if type(key) is str and key.isascii() else _bytes(key)
                memo.keep(readings, key, found, _ENTRY + growth * size)
            return found

        @wraps(function)
        def read_several(*arguments: P.args, **named: P.kwargs) -> R:
            return read((arguments, tuple(named.items())))  # type: ignore[no-any-return]

        return wraps(function)(read) if is_of_one else read_several  # type: ignore[return-value]

    return keeping


class Latest(Generic[K, R]):
    """The last reading of each of several things that change; a new one replaces it."""

    def __init__(self, memo: Memo = _MEMO) -> None:
        self._memo = memo
        self._readings = memo.register()

    def get(self, key: K) -> R | None:
        """The last reading, if it is still kept. It may be out of date: the caller has to check that."""
        found = self._readings.new.get(key)
        if found is None:
            found = self._readings.old.get(key)
            if found is None:
                return None
            self._memo.keep(self._readings, key, found, found[1], largest=_MAX_BYTES_OF_MANY)
        reading: R = found[0]
        return reading

    def keep(self, key: K, reading: R, size: int) -> None:
        """Keep a reading of that many bytes as the last one of this key."""
        before: tuple[R, int] | None = self._readings.new.pop(key, None)
        freed, largest = before[1] if before else 0, _MAX_BYTES_OF_MANY
        self._memo.keep(self._readings, key, (reading, size), size, replaced_size=freed, largest=largest)


def _bytes(argument: object) -> int:
    if isinstance(argument, str):
        return len(argument) if argument.isascii() else len(argument.encode("utf-8", "surrogatepass"))
    if isinstance(argument, tuple):
        is_of_texts = not argument or hasattr(argument[0], "__len__")  # the tables of languages are not counted
        return sum(map(_bytes, argument)) if is_of_texts else 0
    return len(argument) if hasattr(argument, "__len__") else 0


def forget() -> None:
    """Drop all readings of this process: when texts are erased, or before a measurement."""
    _MEMO.forget()
    for clear in _of_words:
        clear()


_of_words: Final[list[Callable[[], None]]] = []
"""For each function, a callable that drops the words that it remembers."""


class _Words(dict[str, R]):
    """The results of a function by word, each computed when it is first needed."""

    def __init__(self, make: Callable[[str], R]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, word: str) -> R:
        result = self._make(word)
        if len(word) <= MAX_WORD_LENGTH:
            if len(self) >= _WORDS:
                self.clear()
            self[word] = result
        return result


def word_memo(function: Callable[[str], R]) -> Callable[[str], R]:
    """Keep the results of a pure function for words of at most ``MAX_WORD_LENGTH`` characters.

    Usual words come again and again; very long ones would only fill the memory. The words of one function take at most
    60 MB, even if somebody makes up 66,000 words of 64 letters with two bytes each. For speed the returned function is
    a method of a dictionary: it is called for every word of a text.
    """
    kept = _Words(function)
    _of_words.append(kept.clear)
    return kept.__getitem__


def with_same_digits(text: str) -> str:
    """A text with each digit from 1 to 9 replaced by 0: so numbers repeat, and a ``word_memo`` knows them."""
    # Bytes are translated: for a text that is not ASCII, str.translate() takes thirty times as long.
    return text.encode("utf-8", "surrogatepass").translate(_SAME_DIGITS).decode("utf-8", "surrogatepass")
