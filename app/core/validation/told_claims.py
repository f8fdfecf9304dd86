"""The exact values that a text claims, each with how to find who else states it."""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.core.text.canonical.forms import find_values
from app.core.text.canonical.given_names import GIVEN_NAMES
from app.core.text.canonical.values import Value
from app.core.text.identifiers import Kind, find_identifiers
from app.core.text.patterns import compiled
from app.core.text.words import stem, words
from app.core.validation.evidence import Evidence

_UNCOUNTED: Final = 2  # "one of", "both": written out, they count nothing
_VALUES: Final = frozenset({"date", "time", "money", "number"})
_CRITICAL: Final = frozenset({"url", "email", "uuid", "path", "version", "code", "money", "date"})
_LONG_NUMBER: Final = 5  # digits: a number that long names something
_QUOTE_MARKS: Final = "\"“”„«»「」`'‘’ "
_ABOUT: Final = compiled(
    r"(?:about|around|roughly|approximately|approx\.?|nearly|almost|some|over|under|~|≈|около|примерно|приблизительно|почти|порядка"
    r"|более|свыше|约|大约|近|将近|左右|ungefähr|etwa|rund|environ|unos|casi)\s*\Z",
    re.IGNORECASE,
)
_BEFORE: Final = 16  # characters before a number in which "about" may stand
_COMMON: Final = frozenset(
    """ai api am app asap bc cd ceo cet cfo ci cli cpu cst cto css cv db diy dns dob eod est eta eu faq fyi gdpr gmt gpu
        gps hq hr html http https id ids io ip it json jwt kpi llm ltd ml mvp na nda ok os pc pdf pin pm po poc pr
        q&a qa
        ram rest roi sdk sla sms sql ssd ssh sso tbd tba tls todo tv uae uk ui un url us usa usd utc ux vat vip vpn vs
        wifi xml yaml zip english russian chinese german french spanish italian japanese arabic american british
        european
        asian african canadian dutch swiss polish turkish ukrainian portuguese korean indian mexican greek swedish latin
        christmas easter internet""".split()
)
"""Abbreviations and adjectives of nations that a summary may bring by itself."""
_UNMARKED: Final = compiled(
    r"(?<![\w.@/-])(?:(?=[a-z0-9]*[a-z])(?=(?:[a-z]*\d){2})[a-z0-9]{7,64}"
    r"|(?:[a-z0-9][a-z0-9-]{0,40}\.){1,5}(?:com|org|net|io|dev|app|ai|co|info|edu|gov|eu|uk|de|fr|es|it|nl|ch|at|pl|ua|ru|cn"
    r"|jp|kr|in|br|local|internal))(?![\w@/]|\.\w)",
    re.IGNORECASE | re.ASCII,
)
"""Codes of letters and digits in any order, and hosts: nobody says them in other words."""
_FIRST_WORD: Final = compiled(r"(?:\A|[.!?:;]\s+)([A-ZА-ЯЁ][a-zа-яё]{1,20})(?=[\s,'’])")


@dataclass(frozen=True, slots=True)
class Claim:
    """One exact value of a text: ``value`` for numbers, money, dates and times, ``text`` for everything else."""

    kind: Kind
    text: str
    start: int
    value: Value | None = None
    is_about: bool = False
    """It is called approximate."""

    @property
    def is_critical(self) -> bool:
        """A value that must not get lost: an address, a code, money, a date, an amount, a long number."""
        value = self.value
        if value is None or value.kind != "number":
            return self.kind in _CRITICAL
        measured = bool(value.unit) and not value.is_word
        return measured or sum(sign.isdigit() for sign in self.text) >= _LONG_NUMBER


def find_claims(text: str, language: str | None = None) -> tuple[Claim, ...]:
    """The exact values of a text, in order; none stands inside another.

    In German every noun begins with a capital letter: there only common given names are taken for names.
    """
    return _claims(text, language == "de")


@lru_cache(maxsize=4_096)
def _claims(text: str, is_german: bool) -> tuple[Claim, ...]:  # noqa: FBT001 - private
    values = find_values(text)
    money = [(value.start, value.end) for value in values if value.kind == "money"]
    exact = [
        found
        for found in find_identifiers(text)
        if found.kind not in _VALUES
        and not (found.kind in {"symbol", "name"} and _inside(found.start, found.start + len(found.text), money))
        and not (is_german and found.kind == "name" and found.text.lower() not in GIVEN_NAMES)
    ]
    fixed = [(found.start, found.start + len(found.text)) for found in exact if found.kind != "name"]
    kept = [value for value in values if not _inside(value.start, value.end, fixed) and not _says_nothing(value)]
    taken = [(value.start, value.end) for value in kept]
    claims = [
        Claim(
            kind=value.kind,
            text=text[value.start : value.end],
            start=value.start,
            value=value,
            is_about=_ABOUT.search(text, max(0, value.start - _BEFORE), value.start) is not None,
        )
        for value in kept
    ]
    claims += [
        Claim(kind=found.kind, text=found.text, start=found.start)
        for found in exact
        if not _inside(found.start, found.start + len(found.text), taken)
    ]
    claims += _given_names(text, {claim.start for claim in claims})
    told = [(claim.start, claim.start + len(claim.text)) for claim in claims]
    claims += [
        Claim(kind="code", text=found.group(), start=found.start())
        for found in _UNMARKED.finditer(text)
        if not _inside(found.start(), found.end(), told)
    ]
    return tuple(sorted(claims, key=lambda claim: claim.start))


def holders(claim: Claim, evidence: Evidence) -> list[int]:
    """The sources that state the value of a claim, in one form or another."""
    if claim.value is not None:
        return _holders_of_value(claim, claim.value, evidence)
    if claim.kind == "name":
        return _holders_of_name(claim.text, evidence)
    if claim.kind == "quoted":
        return _holders_of_quote(claim.text.strip(_QUOTE_MARKS), evidence)
    return _holders_of_code(claim, evidence)


@lru_cache(maxsize=4_096)
def is_critical(text: str) -> bool:
    """Whether a text holds a value that must not get lost."""
    return any(claim.is_critical for claim in find_claims(text))


def _says_nothing(value: Value) -> bool:
    return value.is_word and not value.unit and abs(value.amount or 0) <= _UNCOUNTED


def _inside(start: int, end: int, places: Sequence[tuple[int, int]]) -> bool:
    return any(start < other_end and other_start < end for other_start, other_end in places)


def _given_names(text: str, known: set[int]) -> Iterator[Claim]:
    """Names of persons that begin a sentence: elsewhere a capital letter is enough to tell a name."""
    for match in _FIRST_WORD.finditer(text):
        if match.start(1) not in known and match[1].lower() in GIVEN_NAMES:
            yield Claim(kind="name", text=match[1], start=match.start(1))


def _holders_of_value(claim: Claim, value: Value, evidence: Evidence) -> list[int]:
    found = [source for form in value.needs for source in evidence.with_form(form)]
    found += [source for form in value.needs for source in _looser(form, evidence)]
    if not found and (claim.kind not in {"date", "time"} or _POINT.match(claim.text)):
        found = list(evidence.with_exact(claim.text))
    if not found and claim.is_about and value.amount is not None and evidence.with_about(value.amount, value.unit):
        return [0]
    return list(dict.fromkeys(found))


_POINT: Final = compiled(r"\d{1,2}\.\d{1,2}\Z")
"""A day, or the beginning of a version."""


def _looser(form: str, evidence: Evidence) -> list[int]:
    """What else lets a form be said: an amount without unit where the unit stands elsewhere; a day without its year."""
    kind, _, rest = form.partition(":")
    if kind == "d" and rest[:2].isdigit() and rest.count("-") > 1:
        return list(evidence.with_form(f"d:*{rest[4:]}"))
    amount, _, unit = rest.partition("|")
    if kind == "m" and evidence.with_form(f"c:{unit}"):
        return list(evidence.with_form(f"n:{amount}|*"))
    return []


def _holders_of_name(name: str, evidence: Evidence) -> list[int]:
    """Sources of the rarest part, when every part is known: a surname alone, another case, a possessive."""
    best: list[int] | None = None
    for part in name.replace("-", " ").split(" "):
        for word in words(part):
            found = [0] if word in _COMMON else _holders_of_word(word, evidence)
            if not found:
                return []
            best = found if best is None or len(found) < len(best) else best
    return [0] if best is None else best


def _holders_of_word(word: str, evidence: Evidence) -> list[int]:
    found = list(evidence.with_stem(stem(word)))
    for other in _inflected(word) if not found else ():
        found = found or list(evidence.with_stem(other))
    return found


def _inflected(word: str) -> Iterator[str]:
    """Other stems of the same name: a vowel that comes and goes, its Latin spelling, other endings."""
    base = stem(word)
    if "а" <= word[0] <= "я":
        if len(word) > _FLEETING and word[-2] in "еоё":
            yield word[:-2] + word[-1]
        for vowel in "еоё" if len(base) >= _FLEETING else "":
            yield base[:-1] + vowel + base[-1]
            yield stem(base[:-1] + vowel + base[-1])
        yield from (base + "е", base + "и", base.rstrip("еи"))
        latin = "".join(_LATIN.get(letter, letter) for letter in base)
        yield from (latin, latin + "a", latin + "y", latin + "i")
    elif base.isascii() and len(base) >= _FLEETING:
        yield from (base.removesuffix("s"), base.removesuffix("es"), base.rstrip("aeiouy"), base + "s")


_FLEETING: Final = 4
_LATIN: Final = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
        "a b v g d e e zh z i y k l m n o p r s t u f kh ts ch sh shch _ y _ e yu ya".split(),
        strict=True,
    )
) | {"ъ": "", "ь": ""}


_DRESS: Final = compiled(r"\A(?:https?://(?:www\.)?|www\.|v(?=\d))|(?:\(\)|/)\Z", re.IGNORECASE)
"""What an address, a version or a call may be written with or without."""
_ENDINGS: Final = ("ql", "sql", "db", "js")
"""What a product's name is often said without: "Postgres", "Mongo"."""
_WORD: Final = compiled(r"[A-Za-z]+\Z")


def _holders_of_code(claim: Claim, evidence: Evidence) -> list[int]:
    """Where an address, a code or a symbol stands, exactly: a letter or a digit more is another one."""
    bare = _DRESS.sub("", claim.text)
    if bare.casefold() in _COMMON:
        return [0]
    if found := list(evidence.with_exact(bare)):
        return found
    if claim.kind in _WHOLE:
        return []
    if _WORD.match(bare):  # the name of a product, a library, a class: a word like others
        return _holders_of_words(bare, evidence) or _holders_of_short_name(bare, evidence)
    return evidence.with_pieces(_PIECES.findall(_CAMEL.sub(" ", bare).casefold()))


def _holders_of_short_name(name: str, evidence: Evidence) -> list[int]:
    small = name.casefold()
    short = [small.removesuffix(ending) for ending in _ENDINGS if small.endswith(ending)]
    return [source for each in short if len(each) >= _FLEETING for source in evidence.with_exact(each)]


_WHOLE: Final = frozenset({"email", "url", "uuid", "version"})
_PIECES: Final = compiled(r"[^\W_]+")
_CAMEL: Final = compiled(r"(?<=[a-z])(?=[A-Z])")


def _holders_of_quote(quote: str, evidence: Evidence) -> list[int]:
    """Where a quoted text stands, or all its words do: a title in another case, a term set in quotes."""
    found = list(evidence.with_text(quote))
    return found or _holders_of_words(quote, evidence)


def _holders_of_words(text: str, evidence: Evidence) -> list[int]:
    """Sources that hold every word of a text."""
    common: set[int] | None = None
    for word in words(_CAMEL.sub(" ", text)):
        found = set(_holders_of_word(word, evidence))
        common = found if common is None else common & found
        if not common:
            return []
    return sorted(common or ())
