"""Sections about exact values: numbers, amounts, days and hours."""

from __future__ import annotations

from collections.abc import Mapping

from app.core.text.languages.kinds import Numbers, OfDay, Pattern, Patterns, Rows, Section, Words


class Values(Section):
    """Words for numbers, units, money and the calendar. The English file also has signs and codes of all languages."""

    numbers: Numbers = ()
    scales: Numbers = ()
    """Words for hundred, thousand, ..., each with its number."""
    units: Rows = ()
    """A base unit and the factor to it before the words: ``m 1000 km``. Different base units are not converted."""
    currencies: Rows = ()
    """Words for currencies, by ISO 4217 code."""
    months: Numbers = ()
    weekdays: Numbers = ()
    """Words for weekdays; Monday is 0."""
    days: Numbers = ()
    """Words for days, with the distance from the message's day: ``-1 yesterday``."""
    ordinals: Numbers = ()
    tens: Numbers = ()
    """Tens that may stand before an ordinal: "twenty-first"."""
    shares: Numbers = ()
    """Words for fractions: ``0.5 half``."""
    ordinal_shares: Words = ()
    """Words for fractions that are ordinals directly before a unit: "the third day"."""
    half_units: Rows = ()
    """Single words for an amount of a unit: ``0.5 час полчаса``."""
    named_hours: Rows = ()
    """Words for times of day: ``12:00 noon``."""
    spans: Rows = ()
    """Words for ``week``, ``weekend``, ``month`` and ``year``."""
    compounds: Rows = ()
    """Parts of words after a number ("семилетняя", "dreitägig"), by the unit that they name; ``-``: none."""
    articles: Words = ()
    """Words that mean one of a thing without being a number: "a", "per", "every"."""
    ones: Words = ()
    """In languages without articles: words for units that mean one unit if they stand alone."""
    no_numeral_after: Words = ()
    """Words after "one" that show that it stands for a noun: "one of them"."""
    joints: Words = ()
    """Words that only join other words."""
    approximate: Words = ()
    squares: Words = ()
    cubes: Words = ()
    numbering: Words = ()
    """Words before a bare number that only numbers something, such as a step."""
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
    """Words before a length of time that mean "from now": "in two weeks"."""
    later: Words = ()
    """Words after a length of time that mean "from now": "two weeks later"."""
    ago: Words = ()
    date_fill: Words = ()
    """Words that may stand within a date: "the", "of"."""
    ends: Words = ()
    month_ends: Words = ()
    before_months: Words = ()
    ambiguous: Words = ()
    """Words of the calendar that also have another meaning."""
    ordinal_endings: Words = ()
    number_endings: Words = ()
    tens_and_ones: Words = ()
    """How a ten and its one are written in one word: ``{one}und{ten}``. If this is given, larger numbers may be written
    in one word too."""
    endings: Words = ()
    """Endings written together with numbers and units, such as the particles of Korean."""
    within_words: Numbers = ()
    """Forms of numbers that occur only within a word: the "vent" of "ventuno"."""
    compound_heads: Numbers = ()
    """Further beginnings, beside the numbers themselves, of a word that holds a number and its unit."""
    beginnings: Words = ()
    """Further words, beside numbers, units and the calendar, with which a value may begin."""
    and_more: Numbers = ()
    """Words after a number or its unit that add a fraction: ``0.5 and_a_half``."""
    ten_joints: Words = ()
    """Words between a ten and its one: "treinta y ocho"."""
    hundred_joints: Words = ()
    """Words between hundreds and the rest: "two hundred and five"."""
    one_or_article: Words = ()
    """Number words that are articles if they stand alone."""
    homographs: Words = ()
    """Words of this section that mean something else in other languages. They count only in a text in this language, or
    next to words that show it."""
    before_clock: Words = ()
    """Words before a number that show that it is an hour of the clock: "las ocho y media"."""
    hour_words: Words = ()
    """Words between an hour and its minutes: "huit heures trente"; as often they mean a length of time."""
    past_hour: Words = ()
    """Words between an hour and the minutes after it: "ocho y media"."""
    to_hour: Words = ()
    """Words between an hour and the minutes before it: "neuf heures moins dix"."""
    quarters: Words = ()
    """Words for a quarter of an hour, used before the words of the next keys."""
    half_before: Words = ()
    """Words before an hour that mean half an hour before it, as in "halb sieben"."""
    hour_joints: Words = ()
    """Words between a half or a quarter and the hour to which it leads: "wpół do dziewiątej"."""
    minutes_past: Words = ()
    """Words between minutes and the hour that they follow: "ten past nine"."""
    minutes_to: Words = ()
    """Words between minutes and the hour that they precede: "zehn vor neun"."""
    loose_minutes: Words = ()
    """Those words of the neighbouring keys that also stand between two numbers that are not a time ("5 to 3"). They
    count only with a quarter, an ordinal or a named hour; words of ``minutes_before`` only with an ordinal."""
    minutes_before: Words = ()
    """Words before minutes and the hour that they precede: «без десяти девять»."""
    past_behind: Words = ()
    """Words after an hour and minutes that follow the hour."""
    to_behind: Words = ()
    """Words after an hour and minutes that precede the hour."""
    half_past: Words = ()
    """Words directly after an hour that mean half past it."""
    between_sides: Words = ()
    """Words between the lengths of two sides: "90 by 60 cm"."""
    date_signs: Words = ()
    """In a script whose dates have signs after their numbers: the signs of the year, the month, the day, the hour, the
    minute and the half hour; several signs for one of them are written together."""
    before_decimals: Words = ()
    """Units after which a digit stands for a tenth of them: 三块五, 一米五."""
    after_decimals: Words = ()
    """Characters that may stand after such a digit in a script without spaces."""
    out_of: Words = ()
    """Words between a part and the whole: "23 out of 25"."""
    compared_behind: Words = ()
    """Words soon after a number that show that it is a difference: "20 € cheaper", "5 cm below"; in a script without
    spaces, directly after it."""
    compared_before: Words = ()
    """Words before a number that show that it is a difference: "by 20 €", "leaves 20 €"."""
    ranges: Words = ()
    """Words between two numbers that show that the unit of the second also belongs to the first."""
    number_joints: Words = ()
    """Words between two amounts that are one: "five euros and ten cents"."""
    points: Words = ()
    """Words before decimals that are written in words."""
    shared: Words = ()
    """Words between a fraction and its whole."""
    before_weekdays: Words = ()
    """Further words, beside those of dates, that show that the next word is a weekday."""
    before_lengths: Words = ()
    """Words before a length of time that mean "ago": "vor drei Tagen"."""
    before_rounded: Words = ()
    """Words between a word for rounding and its number: "more than 5"."""
    within_times: Words = ()
    """Words between an hour and its part of the day."""
    hours_of_length: Words = ()
    """Words of the clock that as often mean a length of time."""
    dozens: Words = ()
    short_scales: Words = ()
    """Words for scales only if they stand directly after their number: "5 m" is five metres, "5m" may be millions."""
    counted_scales: Words = ()
    """Words for scales only after a number above one: "two grand" is an amount, "un grand jardin" is not."""
    tight_units: Words = ()
    """Words that are units only if they stand directly after their number."""
    year_marks: Words = ()
    """Words after a year, of which the first two digits may be left out."""
    about_endings: Patterns = ()
    about_after: Patterns = ()
    """Patterns of what shows that the number before is rounded: directly after it, or also after its unit."""
    no_numbers: Patterns = ()
    """In languages without spaces: words in which a numeral is not a number."""
    measures: Words = ()
    """Names of fields in a tool's result whose number is a size and not a code."""


class SaidDay(Section):
    """How the day of a message is written at the end of an entry: with weekday, with day, or only month and year."""

    weekday: OfDay
    day: OfDay
    month: OfDay


class Relative(Section):
    """Words for times that depend on the day on which they are said. Without this section no day is added to them."""

    capital: bool = True
    """Whether such a word with a capital inside a sentence is taken for a title or a noun instead."""
    days: Mapping[str, int]
    """Words that mean one certain day, with its distance in days; the longest that fits counts."""
    parts: tuple[str, ...] = ()
    """Parts of a day that may stand after such a word and belong to it."""
    not_after: Pattern = ""
    not_before: Pattern = ""
    """Patterns of a fixed length of what may not stand directly before or after such a word."""
    by_weekday: Patterns = ()
    by_day: Patterns = ()
    by_month: Patterns = ()
    """Other times that depend on the day, by how much of its date is needed; ``{number}`` stands for a number."""
    number: Pattern = r"\d{1,3}"
    brackets: str = " ({})"
    day: OfDay
    """How a date is written after such a word."""
    said: SaidDay
    months: tuple[str, ...]
    weekdays: tuple[str, ...]


class Exact(Section):
    """Further words, beside ``Values``, by which exact values are found as written, and capitals that are no names."""

    month_first: bool = False
    """Whether a day may stand after its month: "May 3"."""
    currencies: Patterns = ()
    counted: Patterns = ()
    """Things that numbers count, beside units; case counts."""
    no_names: Words = ()
    """Words, in lower case, that begin with a capital for another reason than being a name."""
    shouted: Words = ()
    """Words, in lower case, that are written in capitals for emphasis."""
    titles: Words = ()
    """Titles: a full stop after them does not end a sentence."""
    within_names: Words = ()
    """Words in lower case that may stand within a name."""
