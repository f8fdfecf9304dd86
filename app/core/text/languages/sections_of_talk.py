"""Sections about who says what, and what of it is kept: roles, anchors, cues, work, orders."""

from __future__ import annotations

from collections.abc import Mapping

from app.core.text.languages.kinds import (
    OfSpeaker,
    OfText,
    OfTopics,
    Pattern,
    Patterns,
    Section,
    Template,
    Words,
)


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
    tone: Template
    about: OfTopics
    last: OfText
    last_by: OfSpeaker
    informal: Template
    polite: Template
    friendly: Template
    frustrated: Template
    upset: Template
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
    own: Patterns = ()
    """The speaker's."""
    which: Patterns = ()
    """Rows of words, parted by `` / ``, that tell which of several is meant: who names one of a row does not speak of
    another."""


class Anchors(Section):
    """How commitments, decisions, questions, facts and corrections are said; ``^`` stands after the opening.

    Tried on text that has a letter of the language's script.
    """

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
    understood: Patterns = ()
    """What begins a message of who has understood what was explained."""
    headings: Patterns = ()
    """What only says, in capitals, which kind of statement follows its colon; its case counts."""
    letters: Words = ()
    """The first lines of a letter that somebody pasted, without their colon; their case counts."""


class Orders(Section):
    """Sentences that order the reader of a record about.

    Each list from ``must`` on is one pattern of whole words. Without one, no order is composed that needs it.
    """

    assistant: Pattern
    """Who is addressed: the assistant, by its names, and whoever reads on; ``{assistant}`` in the forms."""
    must: Pattern = ""
    """What binds: "must", "is to", "may not"."""
    replies: Pattern = ""
    """What the assistant says from now on: "every answer", "questions about"."""
    speech: Pattern = ""
    """What is done in speech: "mention", "recommended", "criticism"."""
    strict: Pattern = ""
    """For good, or not at all: "always", "no longer", "forbidden"."""
    hiding: Pattern = ""
    """What keeps something from the user."""
    rules: Pattern = ""
    """What was asked for before: "earlier instructions"."""
    void: Pattern = ""
    """What is done to rules: "disregard", "lifted"."""
    reported: Pattern = ""
    """By which a sentence tells of an order, and gives none: "asked", "agreed", "according"."""
    forms: Patterns
    """For the beginning of a sentence; at most ten."""


class Claims(Section):
    """What a sentence does to what was said, or is for; whole words where nothing else is said."""

    supposed: Patterns = ()
    """It is a hypothesis, a guess or a probability."""
    gone: Patterns = ()
    """Its group names what is given up; not whole words."""
    under_way: Patterns = ()
    done: Patterns = ()
    not_done: Patterns = ()
    progress: Words = ()
    """Words of how far a task is, which say nothing of which task it is."""
    obstacles: Patterns = ()
    """Something is in the way."""
    wanted: Patterns = ()
    """Somebody asks for something."""
    stated: Patterns = ()
    """A plain statement that a record must hold; not whole words."""
    defined: Patterns = ()
    """A term is explained."""
    steps: Patterns = ()
    step: Pattern = ""
    """How work goes; the word before a step's number."""
    own: Patterns = ()
    """The words of those who talk for themselves and each other."""
