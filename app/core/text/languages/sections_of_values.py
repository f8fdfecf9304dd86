"""Sections about exact values: numbers, amounts, days and hours."""

from __future__ import annotations

from collections.abc import Mapping

from app.core.text.languages.kinds import Numbers, OfDay, Pattern, Patterns, Rows, Section, Words


class Values(Section):
    """Words of numbers, units, money and the calendar. What all languages write (signs, codes) stands in English."""

    numbers: Numbers = ()
    scales: Numbers = ()
    """Hundreds, thousands, ..., as numbers."""
    units: Rows = ()
    """A base and the factor to it before the words; a base of no factor to another does not convert: ``m 1000 km``."""
    currencies: Rows = ()
    """By ISO 4217 code."""
    months: Numbers = ()
    weekdays: Numbers = ()
    """Monday is 0."""
    days: Numbers = ()
    """Days from the message's day: ``-1 yesterday``."""
    ordinals: Numbers = ()
    tens: Numbers = ()
    """What may stand before an ordinal: "twenty-first"."""
    shares: Numbers = ()
    """``0.5 half``."""
    ordinal_shares: Words = ()
    """Shares that are ordinals directly before a unit: "the third day"."""
    half_units: Rows = ()
    """One word that says how much of which unit: ``0.5 час полчаса``."""
    named_hours: Rows = ()
    """``12:00 noon``."""
    spans: Rows = ()
    """``week``, ``weekend``, ``month`` and ``year``, each with its words."""
    compounds: Rows = ()
    """What follows a number in one word ("семилетняя", "dreitägig"), after the unit that it names; ``-`` for none."""
    articles: Words = ()
    """The number one where no number is meant."""
    ones: Words = ()
    """Where there is no article: units of which one is meant."""
    no_numeral_after: Words = ()
    """After "one" they show that it stands for a noun: "one of them"."""
    joints: Words = ()
    """Words that only join others."""
    approximate: Words = ()
    squares: Words = ()
    cubes: Words = ()
    numbering: Words = ()
    """A bare number after them counts something off."""
    range_words: Words = ()
    before_hours: Words = ()
    late: Words = ()
    """Words for the afternoon and the evening."""
    early: Words = ()
    night: Words = ()
    clock: Words = ()
    past: Words = ()
    next: Words = ()
    this: Words = ()
    ahead: Words = ()
    """Before a length of time: then."""
    later: Words = ()
    """After a length of time: then."""
    ago: Words = ()
    date_fill: Words = ()
    """What may stand within a date: "the", "of"."""
    ends: Words = ()
    month_ends: Words = ()
    before_months: Words = ()
    ambiguous: Words = ()
    """Words of the calendar that are other words too."""
    ordinal_endings: Words = ()
    number_endings: Words = ()
    tens_and_ones: Words = ()
    """How a ten and its one are written in one word: ``{one}und{ten}``. Where something stands here, larger numbers may
    be written in one word too."""
    endings: Words = ()
    """What is written behind numbers and units in one word with them: the particles of Korean."""
    within_words: Numbers = ()
    """Numbers that stand so within one word alone: the "vent" of "ventuno"."""
    compound_heads: Numbers = ()
    """Beside the numbers themselves: what one word may begin with that holds a number and its unit."""
    beginnings: Words = ()
    """Beside numbers, units and the calendar: what a value may begin with."""
    and_more: Numbers = ()
    """After a number or its unit: ``0.5 and_a_half``."""
    ten_joints: Words = ()
    """Between a ten and its one: "treinta y ocho"."""
    hundred_joints: Words = ()
    """Between hundreds and what is below: "two hundred and five"."""
    one_or_article: Words = ()
    """Number words that are articles where they stand alone."""
    homographs: Words = ()
    """Words of this section that are other words elsewhere: they count beside such words of this language alone, and in
    a text that is in it."""
    before_clock: Words = ()
    """They show that a number is an hour of the clock: "las ocho y media"."""
    hour_words: Words = ()
    """Between an hour and its minutes: "huit heures trente"; as often they tell a length."""
    past_hour: Words = ()
    """Between an hour and the minutes after it: "ocho y media"."""
    to_hour: Words = ()
    """Between an hour and the minutes before it: "neuf heures moins dix"."""
    quarters: Words = ()
    """A quarter of an hour before the words of the next keys."""
    half_before: Words = ()
    """Before an hour: half of an hour before it, as in "halb sieben"."""
    hour_joints: Words = ()
    """Between a half or a quarter and the hour that it leads to: "wpół do dziewiątej"."""
    minutes_past: Words = ()
    """Between minutes and the hour before them: "ten past nine"."""
    minutes_to: Words = ()
    """Between minutes and the hour behind them: "zehn vor neun"."""
    loose_minutes: Words = ()
    """Of the keys around: they stand beside two bare numbers that are no time as well ("5 to 3"), and so count beside
    a quarter, an ordinal or a named hour alone; those before minutes beside an ordinal."""
    minutes_before: Words = ()
    """Before minutes and the hour behind them: «без десяти девять»."""
    past_behind: Words = ()
    """Behind an hour and the minutes after it."""
    to_behind: Words = ()
    """Behind an hour and the minutes before it."""
    half_past: Words = ()
    """Directly behind an hour: half past it."""
    between_sides: Words = ()
    """Between the lengths of two sides: "90 by 60 cm"."""
    date_signs: Words = ()
    """In a script whose dates have signs behind their numbers: those of the year, the month, the day, the hour, the
    minute and the half of an hour; several for one stand together."""
    before_decimals: Words = ()
    """Units after which a digit stands for a tenth of them: 三块五, 一米五."""
    after_decimals: Words = ()
    """What may stand after such a digit in a script without spaces."""
    out_of: Words = ()
    """Between a part and the whole: "23 out of 25"."""
    compared_behind: Words = ()
    """Near behind a number that is a difference: "20 € cheaper", "5 cm below"; in a script without spaces, directly."""
    compared_before: Words = ()
    """The same before it: "by 20 €", "leaves 20 €"."""
    ranges: Words = ()
    """Between two numbers, the unit of the second of which is the first one's too."""
    number_joints: Words = ()
    """Between two amounts that are one: "five euros and ten cents"."""
    points: Words = ()
    """Before decimals that are told in words."""
    shared: Words = ()
    """Between a share and what it is of."""
    before_weekdays: Words = ()
    """Beside those of dates: they show that a word is a weekday."""
    before_lengths: Words = ()
    """Before a length of time that is over: "vor drei Tagen"."""
    before_rounded: Words = ()
    """Between a word that rounds and its number: "more than 5"."""
    within_times: Words = ()
    """Between an hour and its part of the day."""
    hours_of_length: Words = ()
    """Words of the clock that are as often lengths."""
    dozens: Words = ()
    short_scales: Words = ()
    """Scales only directly after their number: "5 m" are metres, "5m" may be millions."""
    counted_scales: Words = ()
    """Claimed only after a number above one: "two grand" is an amount, "un grand jardin" is none."""
    tight_units: Words = ()
    """Words that are units only directly after their number."""
    year_marks: Words = ()
    """After a year, of which two digits may be left out."""
    about_endings: Patterns = ()
    about_after: Patterns = ()
    """After a number that is rounded: directly, and after its unit too."""
    no_numbers: Patterns = ()
    """Where words are not spaced: words in which a numeral counts nothing."""
    measures: Words = ()
    """What a field of a tool's result is called whose number is a size, and no code."""


class SaidDay(Section):
    """How the day of a message is written at the end of an entry, by what of it is needed."""

    weekday: OfDay
    day: OfDay
    month: OfDay


class Relative(Section):
    """Times that are told by the day on which they are said; without it no day is written beside them."""

    capital: bool = True
    """What begins with a capital elsewhere than a sentence is a title or a noun, and no such word."""
    days: Mapping[str, int]
    """Words whose day follows from that day, with their distance in days; the longest that fits counts."""
    parts: tuple[str, ...] = ()
    """Parts of a day that may stand after such a word, and belong to it."""
    not_after: Pattern = ""
    not_before: Pattern = ""
    """What may not stand directly beside such a word, of a fixed length."""
    by_weekday: Patterns = ()
    by_day: Patterns = ()
    by_month: Patterns = ()
    """Times that are told by the day but name no single one, by what of it is needed; ``{number}`` stands for one."""
    number: Pattern = r"\d{1,3}"
    brackets: str = " ({})"
    day: OfDay
    """How a day is written after such a word."""
    said: SaidDay
    months: tuple[str, ...]
    weekdays: tuple[str, ...]


class Exact(Section):
    """What an exact value is found by verbatim beside the words of ``Values``, and capitals that begin no name."""

    month_first: bool = False
    """Whether a day may stand behind its month: "May 3"."""
    currencies: Patterns = ()
    counted: Patterns = ()
    """What numbers count beside units; case counts."""
    no_names: Words = ()
    """Words that begin with a capital for another reason, in small letters."""
    shouted: Words = ()
    """Words that are written in capitals to be heard, in small letters."""
    titles: Words = ()
    """A full stop after them ends no sentence."""
    within_names: Words = ()
    """Small words within a name."""
