r"""What a file of a language says, section by section. Only ``code`` and ``name`` are needed.

What a language leaves out it does without: nothing of that kind is recognised in it, and what the service has to write
of its own is written in English. Where that is otherwise, the section says so.

Values are of a few kinds:

* ``Pattern``: a regular expression without regard to case, with straight apostrophes where nothing else is said.
  Every repetition in it is bounded or possessive (see ``app.core.text.patterns``). ``Patterns``: one, or a list.
* ``Words``: words between blanks.
* ``Rows``: lines of a value and the words for it, between blanks: ``10 ten``. ``минут/а/ы`` stands for a stem alone and
  with each ending, ``last_night`` for two words; small letters, "е" for "ё".
* ``Template``: a text with names in braces that are filled in; which names, its field says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from string import Formatter
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from app.core.text.patterns import fault_of

Script = Literal[
    "latin", "cyrillic", "han", "kana", "hangul", "arabic", "greek", "hebrew", "devanagari", "bengali", "tamil", "thai",
    "georgian", "armenian",
]  # fmt: skip
CHECKED: Final = {"patterns": True}
"""The context of a validation that tries each pattern too: that takes time, which the program's own files need not."""


def _tried(source: str, info: ValidationInfo) -> str:
    if info.context == CHECKED and (fault := fault_of(source.replace("{number}", "1"))):
        raise ValueError(f"{source!r} is no regular expression: {fault}")
    return source


def _listed(given: object) -> object:
    return (given,) if isinstance(given, str) else given


def _parted(given: object) -> object:
    return tuple(given.split()) if isinstance(given, str) else given


def _naming(*names: str) -> Callable[[str], str]:
    def checked(template: str) -> str:
        unknown = {name for _, name, _, _ in Formatter().parse(template) if name is not None} - set(names)
        if unknown:
            raise ValueError(f"nothing is filled in for {sorted(unknown)}; there are: {', '.join(names) or 'none'}")
        return template

    return checked


def spelled(word: str) -> Iterator[str]:
    """The words that one word of a row stands for."""
    stem, *endings = word.split("/")
    yield stem.replace("_", " ")
    yield from (stem + ending for ending in endings)


def _rows(given: object) -> object:
    """(what stands first, words) of each line."""
    if not isinstance(given, str):
        return given
    rows = [line.split() for line in given.strip().splitlines()]
    return tuple(
        (first, tuple(form for word in words for form in spelled(word))) for first, *words in filter(None, rows)
    )


def _numbered(rows: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    for first, words in rows:
        try:
            float(first)
        except ValueError:
            raise ValueError(f"the row {' '.join([first, *words])!r} has to begin with a number") from None
    return rows


Pattern = Annotated[str, AfterValidator(_tried)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(_listed)]
Words = Annotated[tuple[str, ...], BeforeValidator(_parted)]
Rows = Annotated[tuple[tuple[str, tuple[str, ...]], ...], BeforeValidator(_rows)]
Numbers = Annotated[Rows, AfterValidator(_numbered)]
"""Rows that begin with a number."""
Template = Annotated[str, AfterValidator(_naming())]
OfTopics = Annotated[str, AfterValidator(_naming("topics"))]
OfSubject = Annotated[str, AfterValidator(_naming("subject", "topics"))]
OfTopic = Annotated[str, AfterValidator(_naming("topic"))]
OfText = Annotated[str, AfterValidator(_naming("text"))]
OfSpeaker = Annotated[str, AfterValidator(_naming("speaker", "text"))]
OfDay = Annotated[str, AfterValidator(_naming("day", "month", "year", "weekday"))]


class Section(BaseModel):
    """A part of a file: a key that it does not have is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CommonWords(Section):
    """Words that say little; all of them are words of every text, whatever its language."""

    function: Words = ()
    """What carries grammar and no content, in small letters. By these a language is told from others of its script:
    without them it is detected only where it is the only one of its script."""
    content: Words = ()
    """What has content here, though it is grammar in other languages: "die" in English."""
    generic: Words = ()
    """Content words too common in talk to name a topic."""
    frame: Words = ()
    """A record's own voice: whose words are told, and that they were said."""
    technology: Words = ()
    """Names of technology that are written like ordinary words."""
    signs: Words = ()
    """Where words are not spaced: signs that are function words, or parts of so many words that they say nothing."""


class Roles(Section):
    """How speakers without a name are called; each must be unlike those of other languages' other roles."""

    user: str
    assistant: str
    tool: str


class Quotes(Section):
    """What stands before a quotation, without its colon, by whose words they are."""

    user: str
    assistant: str
    system: str
    tool: str
    document: str


class Phrases(Section):
    """What the offline summarizer adds of its own; without them it writes a conversation's own words alone."""

    open_question: Template
    before: Template
    tone: Template
    uses: Template
    about: OfTopics
    about_of: OfSubject
    lately: Template
    last: OfText
    last_by: OfSpeaker
    brief: Template
    middling: Template
    lengthy: Template
    informal: Template
    polite: Template
    friendly: Template
    frustrated: Template
    upset: Template
    over: OfTopic
    over_name: OfTopic
    relieved: Template
    calm: Template
    since: Template
    steady: Template
    better: Template
    worse: Template


class Work(Section):
    """What is said of work on files. Patterns that are tried on texts of every language: whole words where spaced."""

    done: Pattern = ""
    """Something was made, changed or looked at."""
    ahead: Pattern = ""
    """It is yet to be done."""


class AnchorCues(Section):
    """How one type of anchor is said. The patterns see the first 400 characters of a statement."""

    says: Patterns = ()
    """For whoever speaks."""
    user: Patterns = ()
    """For users."""
    with_value: Patterns = ()
    """For users, beside an exact value."""
    with_name: Patterns = ()
    with_technology: Patterns = ()
    assistant: Patterns = ()
    """For assistants, beside an exact value; in questions also without one."""
    asks: Patterns = ()
    """For questions."""
    never: Patterns = ()
    """No anchor all the same."""
    labelled: Patterns = ()
    """For users, before any other type is thought of: a label that says it ("Rule:")."""
    standing: Patterns = ()
    """Likewise: its own words leave no doubt ("Never disclose ...")."""


class Turn(Section):
    """What a later message does to what was said."""

    evasive: Patterns = ()
    """No answer."""
    yes: Patterns = ()
    no: Patterns = ()
    polite_no: Patterns = ()
    """Turns nothing down."""
    smalltalk: Patterns = ()
    """Answers nothing."""
    ousts: Patterns = ()
    """Its group names what goes."""
    takes_back: Patterns = ()
    """Says that something is taken back, not what."""
    because: Patterns = ()
    """A reason begins."""
    times: Patterns = ()
    """Words for days and hours that take each other's place."""
    purpose: Patterns = ()
    """Its groups name what something is for."""
    adds: Patterns = ()
    """Beside what was said."""
    switches: Patterns = ()
    """Something is left for something else."""
    chooses: Patterns = ()
    """The words of a bare choice, all but what is chosen."""
    changes: Patterns = ()
    """Words that only say that something is chosen, or changes."""
    updates: Patterns = ()
    """The same thing is otherwise now."""
    moves: Patterns = ()
    """It tells of a change."""
    forbids: Patterns = ()
    equates: Patterns = ()
    """What stands between a thing and what it is."""
    owner: Patterns = ()
    """Its group names whose thing it is."""
    own: Patterns = ()
    """The speaker's."""
    which: Patterns = ()
    """Rows of words, parted by `` / ``, that tell which of several is meant: who names one of a row does not speak of
    another."""


class Anchors(Section):
    """How commitments, decisions, questions, facts and corrections are said; ``^`` stands behind the opening."""

    letters: str
    """Inside of a character class, its alphabet: the section is tried on text that has some of it."""
    opening: Patterns = ()
    """Words before the point ("well,"), which are skipped."""
    reported: Patterns = ()
    hypothetical: Patterns = ()
    """Both: speech that binds nobody."""
    shows: Patterns = ()
    """What leads in a text that is only shown ("translate this:"): what follows in the message is nobody's word."""
    announces: Patterns = ()
    """The same of what begins in the next line ("here is the page I found.")."""
    first_person: Patterns = ()
    """Words by which a speaker means themselves."""
    commitment: AnchorCues | None = None
    decision: AnchorCues | None = None
    unresolved_question: AnchorCues | None = None
    critical_fact: AnchorCues | None = None
    correction: AnchorCues | None = None
    turn: Turn = Turn()
    kinds: Mapping[str, Pattern] = {}
    """By kind of technology (``database``, ...), what its things are called: ``our main database``."""


class Cues(Section):
    """What tells an important sentence, whoever says it; tried on texts of every language."""

    correction: Patterns = ()
    update: Patterns = ()
    decision: Patterns = ()
    rule: Patterns = ()
    constraint: Patterns = ()
    identity: Patterns = ()
    preference: Patterns = ()
    plan: Patterns = ()
    commitment: Patterns = ()
    open: Patterns = ()
    event: Patterns = ()
    result: Patterns = ()
    closed: Patterns = ()
    emphasis: Patterns = ()


class Talk(Section):
    """How people talk beside the matter, for the offline summarizer; tried on texts of every language."""

    in_words: Patterns = ()
    """Counts and times told in words: as exact as a number, though no identifier."""
    pleasantry: Patterns = ()
    """What a sentence begins with that only keeps up the talk."""
    filler: Patterns = ()
    """Words before the point, left out; a mark follows them."""
    acceptance: Patterns = ()
    rejection: Patterns = ()
    """Both: what an answer begins with."""
    proposal: Patterns = ()
    non_answer: Patterns = ()
    style_wish: Patterns = ()
    """How somebody wishes to be answered."""
    frustration: Patterns = ()
    distress: Patterns = ()
    relief: Patterns = ()
    negated: Patterns = ()
    """Before a feeling: it is not felt."""
    delight: Patterns = ()
    polite: Patterns = ()
    informal: Patterns = ()
    explain: Patterns = ()
    """Somebody asks what something means."""


class Values(Section):
    """Words of numbers, units, money and the calendar. Signs and codes that all languages write stand in English."""

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
    """Of the afternoon and evening."""
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
    """Parts of a day that may stand behind such a word, and belong to it."""
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
    """How a day is written behind such a word."""
    said: SaidDay
    months: tuple[str, ...]
    weekdays: tuple[str, ...]


class Orders(Section):
    """Sentences that order the reader of a record about."""

    assistant: Pattern
    """The words by which the assistant is called; ``{assistant}`` in the forms."""
    forms: Patterns
    """For the beginning of a sentence; at most ten."""


class Questions(Section):
    r"""What questions ask for, what answers look like; searched in lower case. ``\^`` stands for a capital letter."""

    when: Patterns = ()
    who: Patterns = ()
    where: Patterns = ()
    title: Patterns = ()
    how_many: Patterns = ()
    time: Patterns = ()
    time_words: Words = ()
    """Both: by which a message says when something was; mere words are found fastest."""
    people: Patterns = ()
    place: Patterns = ()
    number: Patterns = ()
    first_person: Patterns = ()
    first_person_words: Words = ()
    second_person: Patterns = ()
    second_person_words: Words = ()
    told: Patterns = ()
    """What a question says of what the assistant said before."""
    user: Patterns = ()
    assistant: Patterns = ()
    """What a question about a conversation calls its two sides."""
    hello: Pattern = ""
    """What stands before the name of who is spoken to."""
    called: Pattern = ""
    """What stands before the speaker's own name."""
    months: Numbers = ()
    """``1 january jan``."""
    courtesies: Pattern = ""
    """What a message may consist of that only keeps up the talk."""
    fillers: Pattern = ""
    """What may stand beside it."""
    courtesy_signs: str = ""
    """Single signs of the same kind, where words are not spaced."""
    instructions: Pattern = ""
    """What asks to work on a text that comes along."""
    points_back: Pattern = ""
    """What says that something was said, or is known, already."""


class Related(Section):
    """Related words, by general knowledge: "pets" is answered by "dog"."""

    kinds: str = ""
    """Words that ask for a kind, a colon, words of that kind; a line each."""
    forms: str = ""
    """Forms that no ending tells, spellings of chats, and words that mean the same; between strokes."""
    wide_kinds: str = ""
    wide_forms: str = ""
    """The same, finer, wider and looser, so that recall weighs them apart."""


class Language(Section):
    """One file."""

    code: str
    """ISO 639-1; also the name of the file."""
    name: str
    """In English, for instructions to models."""
    script: Script = "latin"
    spaced: bool = True
    """Whether its words stand between blanks."""
    words_per_token: float | None = None
    """Of a model's tokens; without it, 0.6."""
    characters_per_token: float | None = None
    """Instead of that, where words are not spaced."""
    in_doubt: str | None = None
    """The mark behind an entry that is in doubt."""
    roles: Roles | None = None
    quotes: Quotes | None = None
    phrases: Phrases | None = None
    words: CommonWords = CommonWords()
    values: Values = Values()
    relative: Relative | None = None
    cues: Cues = Cues()
    talk: Talk = Talk()
    anchors: Anchors | None = None
    goals: Patterns = ()
    """How somebody says what they are after; ``^`` is the start of a line."""
    work: Work = Work()
    orders: Orders | None = None
    questions: Questions = Questions()
    related: Related = Related()
