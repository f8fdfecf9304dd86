"""From tokens to values: what each number, word and sign of a text means beside its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from app.core.text import moments
from app.core.text.folding import Folded
from app.core.text.moments import Day
from app.core.text.numerals import goes_on, of_words, plain
from app.core.text.scanner import Token, tokens
from app.core.text.tables import (
    AGO, AHEAD, APPROXIMATE, ARTICLES, BEFORE_HOURS, BEFORE_MONTHS, CLOCK, CUBES, CURRENCIES, DATE_FILL, EARLY, ENDS,
    HALF_HOURS, HALF_UNITS, LATE, LATER, MONTH_ENDS, MONTHS, NAMED_HOURS, NEAR, NEXT, NIGHT,
    NO_NUMERAL_AFTER, NUMBERING, NUMBERS, ONES, ORDINALS, PAST, RANGE_WORDS, SCALES, SHARES, SPANS, SQUARES, TENS, THIS, UNITS,
    WEEKDAYS, WORDS_AND_VERBS,
)  # fmt: skip
from app.domain.words.patterns import capped, compiled

_TIGHT: Final = frozenset({"", " ", "-", "  ", " -", "- "})
_LOOSE: Final = frozenset({*_TIGHT, ".", ". ", ",", ", ", " (", "/", " /", " - ", " | ", ".-"})
_DAY_LIST: Final = _LOOSE - {" (", "/", " /", " | "}
_DIGITS: Final = compiled(r"\d{1,15}")
_LIST_MARK: Final = capped(r"[.)]\s", 2)
_ABOUT_AFTER: Final = capped(r"(?:[多余]|[ -]?(?:ish|odd)\b|(?: ?[^\W\d_]{1,20})? ?(?:or so\b|左右|上下))", 30)
_OPERATOR_BEFORE: Final = capped(
    r"[\w)}\]]\s?[+*×·÷^√]\s?$|(?:(?<!\w)\w|\d|[)}\]])\s?[=≈<>≤≥]\s?$|[\^√_(]\s?$(?<![(])", 6
)
_OPERATOR_AFTER: Final = capped(r"\s?(?:[*×·÷^√]|\+\s?[\w(\\]|-\s?\d{1,6}\s?=|=\s?[\w(\\-])", 12)
_AND_A_HALF: Final = (("and", "a", "half"), ("с", "половиной"), ("个半",))
_SMALL: Final = 10
_GROUPED: Final = 1_000
_RANGES: Final = frozenset({"-", "to", "bis", "до", "or", "oder", "или", "到", "至"})
_DAYS, _HOURS, _CLOCK_HOURS = 31, 24, 12


@dataclass(slots=True)
class Found:
    """A value at its place in the folded text."""

    kind: str
    start: int
    end: int
    forms: frozenset[str]
    is_claim: bool = True
    """Whether a statement that holds it states an exact value; otherwise it is only of use as what a text gives."""
    amounts: list[tuple[float, str]] = field(default_factory=list)
    """Each with the base of its unit; empty: as written."""
    is_approximate: bool = False
    readings: list[float] = field(default_factory=list)
    unit: tuple[str, float] | None = None
    scale: float = 1.0


def read(text: Folded, at: date | None, *, generous: bool) -> list[Found]:
    """Every value of a text, in order.

    Args:
        text: Folded.
        at: The day of its message, from which relative days follow.
        generous: Whether to give all that the text may mean; otherwise the values that it states.
    """
    return _Reader(text, tokens(text), at, generous=generous).read()


class _Reader:
    def __init__(self, text: Folded, found: list[Token], at: date | None, *, generous: bool) -> None:
        self._text = text.text
        self._cased = text.cased
        self._tokens = found
        self._at = at
        self._generous = generous
        self._found: list[Found] = []

    def read(self) -> list[Found]:
        place = 0
        steps = (self._finished, self._date, self._time, self._relative, self._number)
        while place < len(self._tokens):
            for step in steps:
                after = step(place)
                if after > place:
                    place = after
                    break
            else:
                place += 1
        return self._found

    # -- neighbours

    def _word(self, place: int) -> str:
        """The word or sign there; empty for anything else."""
        return self._tokens[place].text if 0 <= place < len(self._tokens) and self._tokens[place].kind in "ws" else ""

    def _kind(self, place: int) -> str:
        return self._tokens[place].kind if 0 <= place < len(self._tokens) else ""

    def _gap(self, place: int) -> str:
        """What stands between a token and the one before it."""
        if not 0 < place < len(self._tokens):
            return "\n"
        return self._text[self._tokens[place - 1].end : self._tokens[place].start]

    def _is_near(self, place: int, gaps: frozenset[str] = _TIGHT) -> bool:
        return self._gap(place) in gaps

    def _add(self, kind: str, first: int, last: int, forms: frozenset[str], *, is_claim: bool = True) -> None:
        start, end = self._tokens[first].start, self._tokens[last].end
        self._found.append(Found(kind, start, end, forms, is_claim))

    def _give(self, place: int, forms: frozenset[str]) -> None:
        if self._generous and forms:
            self._add("date", place, place, forms, is_claim=False)

    # -- values that the scan knows already

    def _finished(self, place: int) -> int:
        token = self._tokens[place]
        if token.kind in {"url", "email", "path", "identifier", "version"}:
            inside = _given_inside(token.text) if self._generous else ()
            self._add(token.kind, place, place, frozenset([*token.data, *inside]))
        elif token.kind == "d":
            self._days(place, place, token.data)
        elif token.kind == "r" and self._at:
            step = {"上": -1, "上上": -2, "下": 1, "下下": 2, "": None}.get(token.data[0], 0)
            self._give(place, frozenset(moments.of_dates(moments.weekdays(self._at, token.data[1], step))))
        elif token.kind == "span" and self._at:
            self._give(place, frozenset(moments.of_span(self._at, *token.data)))
        elif token.kind not in {"r", "span"}:
            return place
        return place + 1

    def _days(self, first: int, last: int, days: list[Day]) -> None:
        possible = [day for day in days if moments.is_day(day)]
        if not possible:
            return
        if self._generous:
            forms = frozenset(form for day in possible for form in moments.given(day, self._at))
        else:
            forms = frozenset(form for day in possible for form in moments.claimed(day))
        parts = self._tokens[last].text.split("/") if first == last else []
        if len(parts) == 3 and len(parts[2]) == 2:  # noqa: PLR2004 - three numbers, perhaps: "12/14/16 mm"
            numbers = [f"n:{int(part)}" for part in parts]
            forms |= set(numbers) if self._generous else {"&".join(numbers)}
        has_more = any(day[0] or day[2] for day in possible)
        self._add("date", first, last, forms, is_claim=has_more)

    # -- dates of several words

    def _date(self, place: int) -> int:
        days = self._day_numbers(place)
        after = days[-1][2] if days else place
        month_at = after
        while self._word(month_at) in DATE_FILL and self._is_near(month_at) and month_at - after < 2:  # noqa: PLR2004
            month_at += 1
        month = MONTHS.get(self._word(month_at)) if days and self._is_near(month_at, _LOOSE) else None
        if month:
            return self._days_of_month(place, month_at + 1, month, days)
        month = MONTHS.get(self._word(place))
        if not month:
            return self._numeric_day(place)
        first = place + 1 + (self._word(place + 1) == "the")
        days = self._day_numbers(first) if self._is_near(first, _LOOSE) else []
        if days:
            return self._days_of_month(place, days[-1][2], month, days)
        year, last = self._year(place + 1)
        is_plain = self._word(place) not in WORDS_AND_VERBS
        if year and (is_plain or self._is_capital(place)):
            self._days(place, last - 1, [(year, month, None)])
            return last
        if self._generous and self._at and (is_plain or self._is_named_month(place)):
            self._give(place, frozenset(moments.given((None, month, None), self._at)))
        return place + 1 if is_plain and self._word(place) not in UNITS else place

    def _is_capital(self, place: int) -> bool:
        return self._cased[self._tokens[place].start].isupper()

    def _is_named_month(self, place: int) -> bool:
        return self._is_capital(place) and self._word(place - 1) in BEFORE_MONTHS and self._gap(place) == " "

    def _days_of_month(self, first: int, after: int, month: int, days: list[tuple[int, int, int]]) -> int:
        """One date for each day; the month and the year, up to ``after``, belong to the last or the first of them."""
        year, last = self._year(after)
        is_month_first = days[0][1] != first
        ends = [days[0][2], *[day[2] for day in days[1:]]] if is_month_first else [day[2] for day in days]
        for number, (day, start, _) in enumerate(days):
            is_last = number == len(days) - 1
            self._days(first if not number else start, (last if is_last else ends[number]) - 1, [(year, month, day)])
        return last

    def _day_numbers(self, place: int) -> list[tuple[int, int, int]]:
        """Days of a month in a row ("1", "1st to the 3rd", "с первого по десятое"), each with its tokens' places."""
        days: list[tuple[int, int, int]] = []
        after = place
        while len(days) < 4:  # noqa: PLR2004 - of a list
            day, last = self._day_number(after)
            if not day:
                break
            days.append((day, after, last))
            after = last
            while self._word(after) in RANGE_WORDS | DATE_FILL and self._is_near(after, _DAY_LIST) and after - last < 2:  # noqa: PLR2004
                after += 1
            if not self._is_near(after, _DAY_LIST):
                break
        return days

    def _day_number(self, place: int) -> tuple[int, int]:
        if not 0 <= place < len(self._tokens):
            return 0, place
        token = self._tokens[place]
        if token.kind == "o" or (token.kind == "n" and token.text.isdigit() and len(token.text) <= 2):  # noqa: PLR2004
            number = token.data if token.kind == "o" else int(token.text)
            return (number, place + 1) if number and 1 <= number <= _DAYS else (0, place)
        if token.text in TENS and self._word(place + 1) in ORDINALS and self._is_near(place + 1):
            return TENS[token.text] + ORDINALS[self._word(place + 1)], place + 2
        return (ORDINALS[token.text], place + 1) if token.kind == "w" and token.text in ORDINALS else (0, place)

    def _year(self, place: int) -> tuple[int | None, int]:
        if self._kind(place) == "n" and self._is_near(place, _LOOSE):
            text = self._tokens[place].text
            if len(text) == 4 and text.isdigit() and text[0] in "12":  # noqa: PLR2004 - a year
                return int(text), place + 1
        return None, place

    def _numeric_day(self, place: int) -> int:
        """Ordinals alone, "12.9.", "3/8" after "on": days only as what a text gives."""
        token = self._tokens[place]
        if not self._generous:
            return place + 1 if token.kind == "o" else place
        if token.kind == "f" and "/" in token.text:
            over, under = (int(part) for part in token.text.split("/"))
            if len(token.text) > 3 or self._word(place - 1) in BEFORE_HOURS | DATE_FILL | AHEAD | {"on"}:  # noqa: PLR2004
                days: list[Day] = [day for day in ((None, under, over), (None, over, under)) if moments.is_day(day)]
                self._give(place, frozenset(form for day in days for form in moments.given(day, self._at)))
        elif token.kind == "n" and "." in token.text and " " not in token.text:
            first, _, second = token.text.partition(".")
            if first.isdigit() and second.isdigit() and len(token.text) <= 5:  # noqa: PLR2004 - "12.9", "12.09"
                day = (None, int(second), int(first))
                if moments.is_day(day):
                    self._give(place, frozenset(moments.given(day, self._at)))
                if len(second) == 2:  # noqa: PLR2004 - minutes
                    self._give(place, moments.times(int(first), int(second), ""))
        number, after = self._day_number(place)
        follows = self._kind(place + 1) == "o" and self._gap(place + 1) in {"、", "-", "和", ",", ", ", " - "}
        ends_with_point = follows or token.kind == "n" and self._text[token.end : token.end + 1] == "."
        if number and (token.kind != "n" or ends_with_point or self._word(place - 1) in DATE_FILL):
            forms = {f"o:{number}"}
            if self._at:
                forms.update(moments.of_dates(moments.days_of_month(self._at, number)))
            self._give(place, frozenset(forms))
            return after if token.kind == "o" else place
        return place

    # -- times of day

    def _time(self, place: int) -> int:
        token = self._tokens[place]
        if token.kind == "t":
            return self._written_time(place)
        word = self._word(place)
        if word in NAMED_HOURS:
            hour, minute = NAMED_HOURS[word]
            self._add("time", place, place, frozenset({f"t:{hour:02}:{minute:02}"}))
            return place + 1
        if word in HALF_HOURS:
            return self._spoken(place, place, HALF_HOURS[word], -30)
        return self._told_time(place) or self._hour(place)

    def _written_time(self, place: int) -> int:
        token = self._tokens[place]
        hour, minute, second, half = token.data
        half, last = self._half(place + 1, half)
        before = self._word(place - 1)
        if not half and self._is_near(place) and before in LATE | EARLY | NIGHT:
            half = _half_of(before)
        forms = moments.times(hour, minute, half.replace("?", "").replace("h", ""))
        if second is not None:
            exact = frozenset(f"{form}:{second:02}" for form in forms)
            forms = forms | exact if self._generous else exact
        unit, with_unit = self._unit(last)
        if unit and unit[0] == "s" and second is None:
            half, last = "h", with_unit
        if half == "h" or hour > _HOURS or minute > 59 or self._generous:  # noqa: PLR2004 - a length
            length = f"q:{plain(hour * 3600 + minute * 60)}|s"
            forms |= {length, f"q:{plain(hour * 60 + minute)}|s", f"n:{hour}", f"n:{minute}"}
        self._add("time", place, last - 1, forms, is_claim=half != "?")
        return last

    def _half(self, place: int, half: str) -> tuple[str, int]:
        """The half of the day that the next words name, and the token after them."""
        for after in range(place, place + 3):
            if not self._is_near(after):
                break
            word = self._word(after)
            if word == "дня" and after == place and self._kind(place - 1) != "t":  # "2 дня" are days
                break
            if word in LATE | EARLY | NIGHT:
                return _half_of(word), after + 1
            if word not in {"in", "at", "the", *CLOCK}:
                break
        return half, place + (self._word(place) in CLOCK and self._is_near(place))

    def _told_time(self, place: int) -> int:
        """ "half past six", "quarter to nine", "halb sieben", "viertel vor neun", «без четверти девять»."""
        word, following = self._word(place), self._word(place + 1)
        minutes = {"half": 30, "quarter": 15, "viertel": 15, "четверти": 15, "dreiviertel": 45}.get(
            word
        ) or self._small(place)
        if minutes and self._is_near(place + 1) and following in {"past", "to", "vor", "nach", "after", "before"}:
            hour = self._small(place + 2)
            is_spoken = word in {"half", "quarter", "viertel"} or following in {"past", "vor", "nach"}
            if hour and hour <= _CLOCK_HOURS and (is_spoken or following == "to") and self._is_near(place + 2):
                if not is_spoken and (not self._generous or self._word(place - 1) == "from"):
                    return 0
                later = following in {"past", "nach", "after"}
                return self._spoken(place, place + 2, hour, minutes if later else -minutes)
        is_half = (word == "halb", word in {"половина", "половине", "половину"})
        if any(is_half) and self._is_near(place + 1):
            hour = self._small(place + 1) if is_half[0] else ORDINALS.get(following, 0)
            if hour and hour <= _CLOCK_HOURS:
                return self._spoken(place, place + 1, hour, -30)
        if word == "dreiviertel" and (hour := self._small(place + 1)) and self._word(place + 2) not in UNITS:
            return self._spoken(place, place + 1, hour, -15)
        if word == "четверть" and following in ORDINALS and self._is_near(place + 1):
            return self._spoken(place, place + 1, ORDINALS[following], -45)
        if word == "без" and self._is_near(place + 1) and self._is_near(place + 2):
            minutes = 15 if following == "четверти" else self._small(place + 1)
            last = place + 2
            if following in TENS and 0 < self._small(last) < _SMALL and self._small(last + 1):
                minutes, last = TENS[following] + self._small(last), last + 1
            hour = self._small(last)
            if minutes and hour and hour <= _CLOCK_HOURS and self._is_near(last):
                return self._spoken(place, last, hour, -minutes)
        return 0

    def _spoken(self, first: int, last: int, hour: int, minutes: int) -> int:
        half, after = self._half(last + 1, "")
        total = (hour * 60 + minutes) % (_CLOCK_HOURS * 60)
        self._add("time", first, after - 1, moments.times(total // 60 or _CLOCK_HOURS, total % 60, half))
        return after

    def _small(self, place: int) -> int:
        """A whole number of a clock at a token, in digits or one word; zero when there is none."""
        token = self._tokens[place] if 0 <= place < len(self._tokens) else None
        if token is None:
            return 0
        if token.kind == "n" and token.data and token.data[0] < 60:  # noqa: PLR2004 - minutes
            return int(token.data[0]) if token.data[0] == int(token.data[0]) else 0
        value = NUMBERS.get(token.text, 0) if token.kind == "w" else 0
        if token.kind == "w" and token.text in {"ein", "eins"}:
            value = 1
        return int(value) if value == int(value) and value < 60 else 0  # noqa: PLR2004 - minutes

    def _hour(self, place: int) -> int:
        """ "5 pm", "17 Uhr", "в 8 вечера"; "at 7" only as what a text gives."""
        hour = self._small(place)
        if not 0 <= hour <= _HOURS or (hour == 0 and self._tokens[place].text not in {"0", "00"}):
            return place
        half, after = self._half(place + 1, "")
        word = self._word(place + 1)
        is_clock = word in CLOCK and word not in {"час", "часа", "часов"} and self._is_near(place + 1)
        if half or is_clock:
            minute = self._small(place + 2) if word == "uhr" and self._gap(place + 2) == " " else 0
            after = place + 3 if minute and not half else after
            self._add("time", place, after - 1, moments.times(hour, minute, half))
            return after
        if (
            self._generous
            and self._is_near(place)
            and self._word(place - 1) in BEFORE_HOURS | EARLY | LATE | {"-", "o'clock"}
        ):
            before = self._word(place - 1)
            forms = moments.times(hour, 0, _half_of(before) if before in EARLY | LATE else "")
            self._add("time", place, place, forms, is_claim=False)
        elif self._generous and word in RANGE_WORDS and hour:
            self._add("time", place, place, moments.times(hour, 0, ""), is_claim=False)
        return place

    # -- days by their distance from the message

    def _relative(self, place: int) -> int:
        at, word = self._at, self._word(place)
        if not self._generous or at is None or not word:
            return place
        before = self._word(place - 1) if self._is_near(place) else ""
        if word in NEAR:
            far = (
                {"after": 2, "before": -2}.get(before, NEAR[word]) if word in {"tomorrow", "yesterday"} else NEAR[word]
            )
            self._give(
                place,
                frozenset(
                    moments.of_dates(moments.moved(at, NEAR[word] * 86_400, "s") + moments.moved(at, far * 86_400, "s"))
                ),
            )
        step = -1 if before in PAST else 1 if before in NEXT else 0 if before in THIS else None
        if word in WEEKDAYS and (word not in WORDS_AND_VERBS or self._is_capital(place)):
            self._give(place, frozenset(moments.of_dates(moments.weekdays(at, WEEKDAYS[word], step))))
        elif word in SPANS and (step is not None or SPANS[word] == "weekend"):
            self._give(place, frozenset(moments.of_span(at, step or 0, SPANS[word])))
        words_before = {self._word(place - offset) for offset in (1, 2, 3)} if len(self._gap(place)) < _SMALL else set()
        is_end = word in MONTH_ENDS or (SPANS.get(word) == "month" and words_before & ENDS)
        if is_end:
            self._give(place, frozenset(moments.of_dates([moments.month_end(at)])))
        return place

    # -- numbers

    def _number(self, place: int) -> int:
        token = self._tokens[place]
        if token.text in HALF_UNITS and token.kind == "w":
            share, unit = HALF_UNITS[token.text]
            self._measured(place, place + 1, [share], UNITS[unit])
            return place + 1
        amounts, after, scale = self._amounts(place)
        if self._generous:
            self._joined_words(place, after, amounts)
        if amounts:
            return self._quantity(place, after, amounts, scale)
        if token.kind == "f":
            after = place + 1
            return self._shared(place, after, token.data)
        if token.text in SHARES and token.kind == "w":
            return self._shared(place, place + 1, SHARES[token.text])
        if token.kind == "w" and token.text in UNITS and self._generous:
            return self._single(place)
        return place

    def _joined_words(self, place: int, after: int, amounts: list[float]) -> None:
        """What only speech writes so: "nineteen eleven", «семьдесят девятого года», «38 и 2», "three point five"."""
        second, kind = self._word(after), self._kind(after)
        first = amounts[0] if amounts else 0
        whole: list[float] = []
        if first >= _SMALL and self._is_near(after):
            if second in ORDINALS and goes_on(first, ORDINALS[second]):
                tens = first + ORDINALS[second]
                whole = [tens, 1900 + tens, 2000 + tens] if tens < 100 else [tens]  # noqa: PLR2004
            elif self._tokens[place].kind == "w" and 10 <= NUMBERS.get(second, 0) and first in range(10, 21):  # noqa: PLR2004
                rest, _ = self._spelled(after)
                whole = [first * 100 + rest[0]] if rest and rest[0] < 100 else []  # noqa: PLR2004
        if amounts and second in {"и", "point", "komma", "точка", "comma"} and self._is_near(after):
            tenth = self._small(after + 1)
            if self._kind(after + 1) in {"n", "w"} and 0 < tenth < _SMALL and self._is_near(after + 1):
                whole = [first + tenth / 10]
        if whole and kind:
            self._add("number", place, place, frozenset(f"n:{plain(number)}" for number in whole), is_claim=False)

    def _shared(self, place: int, after: int, share: float) -> int:
        """ "half an hour", "eine halbe Stunde", "3/4"; a share without a unit is only of use as what a text gives."""
        while self._word(after) in ARTICLES | {"of"} and self._is_near(after):
            after += 1
        unit, last = self._unit(after)
        if unit and unit[0] != "%":
            self._measured(place, last, [share], unit)
            return last
        percent = f"{share * 100:.0f}"
        self._add("number", place, place, frozenset({f"n:{plain(share)}", f"n:{percent}"}), is_claim=False)
        text = self._tokens[place].text
        if "/" in text:
            self._found[-1].forms |= {f"n:{int(part)}" for part in text.split("/")}
        return place + 1

    def _single(self, place: int) -> int:
        """One of a unit: "a week", "через неделю", "неделю назад"."""
        before, following = self._word(place - 1), self._word(place + 1)
        is_article = before in ARTICLES and self._is_near(place)
        half = next((words for words in _AND_A_HALF if self._says(place + 1, words)), ())
        if half:
            self._measured(place, place + 1, [1.5], UNITS[self._tokens[place].text])
            return place + 1 + len(half)
        if not is_article and self._tokens[place].text in ONES:
            base, factor = UNITS[self._tokens[place].text]
            self._add("number", place, place, frozenset({f"q:{plain(factor)}|{base}"}), is_claim=False)
        if is_article or before in AHEAD or following in AGO:
            self._measured(place, place + 1, [1.0], UNITS[self._tokens[place].text])
            if is_article:
                self._distance(place - 1, place + 1, 1.0, UNITS[self._tokens[place].text])
            else:
                self._distance(place, place + 1, 1.0, UNITS[self._tokens[place].text])
            return place + 1
        return place

    def _measured(self, first: int, after: int, values: list[float], unit: tuple[str, float]) -> None:
        found = Found(
            "number", self._tokens[first].start, self._tokens[after - 1].end, frozenset(), readings=values, unit=unit
        )
        self._finish(found)

    def _amounts(self, place: int) -> tuple[list[float], int, float]:
        """What a number may mean, the token after it, and its scale (1 without one)."""
        token, after = self._tokens[place], place + 1
        if token.kind == "n" and token.text not in SCALES:
            amounts = list(token.data) if self._generous or " " not in token.text else token.data[:1]
            if self._kind(after) == "f" and self._is_near(after) and "/" not in self._tokens[after].text:
                amounts, after = [amount + self._tokens[after].data for amount in amounts], after + 1
        elif token.kind == "w" and (token.text in NUMBERS or token.text in SCALES):
            amounts, after = self._spelled(place)
        else:
            return [], place, 1.0
        half = next((words for words in _AND_A_HALF if self._says(after, words)), ())
        if half:  # "с половиной"
            amounts, after = [amount + 0.5 for amount in amounts], after + len(half)
        scale = 1.0
        while self._tokens[after].text in SCALES if after < len(self._tokens) else False:
            text = self._tokens[after].text
            if not self._is_near(after, _TIGHT | {" ("}) or (
                text == "m" and self._gap(after) and self._generous is False
            ):
                break
            if text in {"m", "b", "t"} and self._gap(after):  # "5 m" are metres, "5m" may be millions
                break
            scale, after = scale * SCALES[text], after + 1
        return amounts, after, scale

    def _says(self, place: int, words: tuple[str, ...]) -> bool:
        """Whether these words follow, with blanks alone between them."""
        return all(
            self._word(place + offset) == word and self._is_near(place + offset) for offset, word in enumerate(words)
        )

    def _spelled(self, place: int) -> tuple[list[float], int]:
        words: list[str] = []
        after, last = place, 0.0
        while after < len(self._tokens) and len(words) < 12:  # noqa: PLR2004 - words of a number
            word = self._word(after)
            if words and (not self._is_near(after) or self._gap(after) in {" -", "- "}):
                break
            if word in NUMBERS:
                value = NUMBERS[word]
                if last and word not in {"dozen", "dutzend"} and not goes_on(last, value):
                    break
                last = value
            elif word in SCALES and len(word) > 1 and (words or SCALES[word] >= 100):  # noqa: PLR2004
                last = SCALES[word]
            elif word == "and" and last >= 100 and self._word(after + 1) in NUMBERS:  # noqa: PLR2004
                after += 1
                continue
            else:
                break
            words.append(word)
            after += 1
        if words == ["one"] or (len(words) == 1 and NUMBERS.get(words[0]) == 1):
            return self._one(place, after)
        return ([of_words(words)] if words and of_words(words) else []), max(after, place + 1)

    def _one(self, place: int, after: int) -> tuple[list[float], int]:
        """ "one" counts before what it counts, not in the place of a noun ("one of them", "this one.")."""
        end = self._tokens[place].end
        following = self._text[end : end + 12].lstrip(" -")
        word = following.split(" ")[0].strip(".,;:!?)")
        if any(self._says(after, words) for words in _AND_A_HALF):
            return [1.0], after
        is_pronoun = not following[:1].isalpha() or word in NO_NUMERAL_AFTER
        return ([] if is_pronoun else [1.0]), after

    def _unit(self, place: int) -> tuple[tuple[str, float] | None, int]:
        """The unit at a token ("м", "sq m", "кв. м"), and the token after it."""
        word, gap = self._word(place), self._gap(place)
        if self._kind(place) == "identifier" and self._tokens[place].text in UNITS:
            word = self._tokens[place].text
        if gap not in _TIGHT and gap not in {" ("}:
            return None, place
        if word in SQUARES | CUBES and self._is_near(place + 1, _LOOSE):
            base, factor = UNITS.get(self._word(place + 1), ("", 1.0))
            if base in {"m", "in"}:
                power = 2 if word in SQUARES else 3
                return (base + "²³"[power - 2], factor**power), place + 2
        if word in UNITS and not (gap and word in {"с", "в", "д", "a", "t", "s", "do"}):
            return UNITS[word], place + 1
        return None, place

    def _quantity(self, place: int, after: int, amounts: list[float], scale: float) -> int:
        """A number with all that stands around it."""
        first, last = place, after
        money = CURRENCIES.get(self._word(place - 1), "") if self._is_near(place) else ""
        unit, with_unit = self._unit(after)
        follows = self._word(after) if self._is_near(after, _TIGHT | {". ", ".", "/"}) else ""
        if follows in {"us", "swiss"}:
            after += 1
            follows = self._word(after)
        if follows in CURRENCIES and not (unit and money):
            money, last, unit = CURRENCIES[follows], after + 1, None
        elif unit:
            last = with_unit
            if self._word(last) == "半" and not self._gap(last):
                amounts, last = [amount + 0.5 for amount in amounts], last + 1
        if unit:  # "$15 \\text{cm}$" is no money
            money = ""
        elif self._word(place - 1) in CURRENCIES and self._is_near(place):
            first = place - 1
        token = self._tokens[place]
        found = Found(
            "money" if money else "number", self._tokens[first].start, self._tokens[last - 1].end, frozenset()
        )
        found.readings, found.unit, found.scale = amounts, unit, scale
        if scale != 1 and self._tokens[place].text not in SCALES:
            found.is_approximate = True
        found.is_approximate |= self._is_about(first, last)
        size = max(abs(amount) for amount in amounts) * scale
        has_digits = token.kind == "n" and sum(sign.isdigit() for sign in token.text) > 1
        is_long = has_digits or size > _SMALL or scale != 1
        found.is_claim = bool(money or unit) or (is_long and not self._is_no_amount(place, last))
        self._finish(found, token)
        if unit and self._generous:
            self._distance(place, last, amounts[0] * scale, unit)
        return last

    def _is_about(self, first: int, last: int) -> bool:
        before = self._word(first - 1) if self._is_near(first) or self._gap(first) in {".", ". "} else ""
        if (
            before in APPROXIMATE
            or before in {"~", "≈"}
            or (before in {"than", "als"} and self._word(first - 2) in APPROXIMATE)
        ):
            return True
        if before in ARTICLES | {"of"} and self._word(first - 2) in APPROXIMATE:
            return True
        end = self._tokens[last - 1].end
        return _ABOUT_AFTER.match(self._text[end : end + 30]) is not None

    def _is_no_amount(self, place: int, last: int) -> bool:
        """A list's number, a step's, a part of a formula, a reference."""
        start, end = self._tokens[place].start, self._tokens[last - 1].end
        before = self._text[max(0, start - 6) : start]
        if before.endswith(("#", "№ ", "№", "[#")) or (
            self._word(place - 1) in NUMBERING and len(self._gap(place)) <= 2
        ):  # noqa: PLR2004
            return True
        if _OPERATOR_BEFORE.search(before) or _OPERATOR_AFTER.match(self._text[end : end + 12]):
            return True
        line = before.rpartition("\n")[2] if "\n" in before or start <= 6 else "?"  # noqa: PLR2004
        return not line.strip(" >-") and _LIST_MARK.match(self._text[end : end + 2]) is not None

    def _finish(self, found: Found, token: Token | None = None) -> None:
        """Work out the forms of an amount, join it to the one before where both are one, and keep it."""
        previous = self._found[-1] if self._found else None
        if (
            previous
            and previous.readings
            and not previous.unit
            and previous.scale == 1
            and (found.unit or found.scale != 1)
        ):
            between = self._text[previous.end : found.start].strip()
            is_range = between in _RANGES or (between in RANGE_WORDS and found.scale == 1)
            if is_range and found.start - previous.end <= 6 and max(previous.readings) < _GROUPED:  # noqa: PLR2004
                previous.unit, previous.scale = found.unit, found.scale
                previous.is_claim = previous.is_claim or bool(found.unit)
                previous.is_approximate |= found.is_approximate
                _state(previous, generous=self._generous)
        _state(found, generous=self._generous)
        if token is not None and token.kind == "n":
            digits = token.text
            if digits.isdigit() and (len(digits) >= 7 or digits[0] == "0") and len(digits) > 2:  # noqa: PLR2004
                found.forms |= {f"i:{digits}"}
                found.kind = "identifier" if found.kind == "number" and not found.unit else found.kind
            if self._generous and "." in digits:
                found.forms |= {f"v:{digits}"}
            if ("," in digits or " " in digits) and (
                _is_han(self._text[token.start - 1 : token.start]) or _is_han(self._text[token.end : token.end + 1])
            ):
                parts = [f"n:{plain(float(part))}" for part in digits.replace(" ", ",").split(",") if part.isdigit()]
                found.forms |= set(parts) if self._generous else {"&".join(parts)}
            if self._generous and digits.isdigit():
                found.forms |= set(_compact_day(digits))
        if previous and found.unit and previous.unit and _go_together(previous, found):
            between = self._text[previous.end : found.start].strip()
            if between in {"", "and", "und", "и", ",", "零", "又"} and found.start - previous.end <= 5:  # noqa: PLR2004
                self._join(previous, found)
                return
        self._found.append(found)

    def _join(self, previous: Found, found: Found) -> None:
        """ "2 h 15 min": one length."""
        base = found.unit[0] if found.unit else ""
        total = sum(one.readings[0] * one.scale * one.unit[1] for one in (previous, found) if one.unit)
        joined = Found(previous.kind, previous.start, found.end, frozenset({f"q:{plain(total)}|{base}"}))
        joined.amounts = [(total, base)]
        joined.is_approximate = previous.is_approximate or found.is_approximate
        if self._generous:
            joined.is_claim = False
            self._found += [found, joined]
            return
        joined.readings, joined.unit = [total], (base, 1.0)
        first, second = (plain(one.readings[0] * one.scale) for one in (previous, found))
        joined.forms |= {f"n:{first}&n:{second}"}
        self._found[-1] = joined

    def _distance(self, first: int, after: int, count: float, unit: tuple[str, float]) -> None:
        """ "in two weeks", "vor drei Tagen", "2 дня назад": the day that is meant."""
        base, factor = unit
        if self._at is None or base not in {"s", "mo"} or (base == "s" and factor < 3600):  # noqa: PLR2004 - an hour
            return
        words = {self._word(first - 1), self._word(first - 2) if self._word(first - 1) in APPROXIMATE else ""}
        following = self._word(after) if self._is_near(after) else ""
        directions = {
            *([1] if words & AHEAD or following in LATER else []),
            *([-1] if following in AGO or words & {"vor", "last", "past"} else []),
        }
        days = [day for way in directions for day in moments.moved(self._at, way * count * factor, base)]
        self._give(first, frozenset(moments.of_dates(days)))


def _given_inside(text: str) -> Iterator[str]:
    """The numbers and days within an identifier or a path."""
    for match in _DIGITS.finditer(text):
        yield f"n:{plain(float(match.group()))}"
        yield from _compact_day(match.group())


def _compact_day(digits: str) -> Iterator[str]:
    """The day that "20260403" is."""
    if len(digits) == 8 and digits[:2] in {"19", "20"}:  # noqa: PLR2004
        day = (int(digits[:4]), int(digits[4:6]), int(digits[6:]))
        if moments.is_day(day):
            yield from moments.given(day, None)


def _is_han(sign: str) -> bool:
    return "\u3040" <= sign <= "\u9fff"


def _half_of(word: str) -> str:
    return "p" if word in LATE else "n" if word in NIGHT else "a"


def _go_together(previous: Found, found: Found) -> bool:
    if not previous.unit or not found.unit or previous.kind != found.kind:
        return False
    return previous.unit[0] == found.unit[0] != "%" and previous.unit[1] > found.unit[1]


def _state(found: Found, *, generous: bool) -> None:
    """Fill in the forms and amounts of a number with its unit and scale."""
    scaled = [reading * found.scale for reading in found.readings]
    if generous and found.scale != 1:
        scaled += found.readings
    forms = {f"n:{plain(amount)}" for amount in scaled}
    found.amounts = [(abs(amount), "") for amount in scaled]
    if found.unit:
        base, factor = found.unit
        if base == "%":
            forms |= {f"n:{plain(amount / 100)}" for amount in scaled}
        else:
            forms |= {f"q:{plain(amount * factor)}|{base}" for amount in scaled}
            found.amounts += [(abs(amount) * factor, base) for amount in scaled]
    found.forms = frozenset(forms)
