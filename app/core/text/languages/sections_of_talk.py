"""Sections about speakers and what is kept of their words: roles, anchors, cues, work, orders."""

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
    """Names for speakers who have none. No name may be the same as that of another role in any language."""

    user: str
    assistant: str
    tool: str


class Quotes(Section):
    """The words before a quotation, without its colon, by the origin of the quoted words."""

    user: str
    assistant: str
    system: str
    tool: str
    document: str


class Phrases(Section):
    """Phrases of the offline summarizer's own; without them it writes only words of the conversation."""

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
    """Words about work on files. They are tried on texts of every language; in languages with spaces as whole words."""

    done: Pattern = ""
    """Words that say that something was made, changed or looked at."""
    ahead: Pattern = ""
    """Words that say that something is yet to be done."""


class AnchorCues(Section):
    """Patterns of statements of one type of anchor. They see the first 400 characters of a statement."""

    says: Patterns = ()
    """Patterns for any speaker."""
    user: Patterns = ()
    """Patterns for users."""
    with_value: Patterns = ()
    """Patterns for users, if the statement has an exact value; the next two, if it has a name or a technology."""
    with_name: Patterns = ()
    with_technology: Patterns = ()
    assistant: Patterns = ()
    """Patterns for assistants, if the statement has an exact value; in questions also without one."""
    asks: Patterns = ()
    """Patterns for questions."""
    never: Patterns = ()
    """Patterns of statements that are not anchors even if another pattern fits."""
    labelled: Patterns = ()
    """Patterns for users that are tried before those of any other type: a label that names the type ("Rule:")."""
    standing: Patterns = ()
    """Likewise patterns of statements whose words leave no doubt ("Never disclose ...")."""


class LaterMessages(Section):
    """Patterns of later messages that change or answer what was said."""

    evasive: Patterns = ()
    """Replies that are no answer."""
    yes: Patterns = ()
    no: Patterns = ()
    polite_no: Patterns = ()
    """A "no" that turns nothing down."""
    smalltalk: Patterns = ()
    """Small talk, which answers nothing."""
    takes_back: Patterns = ()
    """Words that take something back without saying what."""
    because: Patterns = ()
    """Words with which a reason begins."""
    times: Patterns = ()
    """Words for days and hours, of which a later one can replace an earlier one."""
    purpose: Patterns = ()
    """Patterns whose groups name the purpose of something."""
    adds: Patterns = ()
    """Words that say that something is added to what was said, and does not replace it."""
    chooses: Patterns = ()
    """The words of a bare choice, without what is chosen."""
    changes: Patterns = ()
    """Words about choosing and changing in general, which name no topic."""
    updates: Patterns = ()
    """Words that say that something else holds from now on."""
    moves: Patterns = ()
    """Words that report a change that was made ("raised", "renamed")."""
    forbids: Patterns = ()
    equates: Patterns = ()
    """The words between a thing and what it is said to be."""
    own: Patterns = ()
    """Words for what belongs to the speaker."""
    which: Patterns = ()
    """Rows of words, separated by `` / ``, that say which of several things is meant. Statements with different words
    of one row are about different things."""


class Anchors(Section):
    """Patterns of commitments, decisions, questions, facts and corrections; ``^`` is the place after the opening.

    They are tried on texts that have a letter of the language's script.
    """

    opening: Patterns = ()
    """Words before the actual statement ("well,"), which are skipped."""
    reported: Patterns = ()
    hypothetical: Patterns = ()
    """Patterns of reported and of hypothetical speech: both bind nobody."""
    shows: Patterns = ()
    """Words that introduce a text that is only shown ("translate this:"): the rest of the message states nothing."""
    announces: Patterns = ()
    """Words that introduce a shown text that begins in the next line ("here is the page I found.")."""
    first_person: Patterns = ()
    """Words by which a speaker means themselves."""
    commitment: AnchorCues | None = None
    decision: AnchorCues | None = None
    unresolved_question: AnchorCues | None = None
    critical_fact: AnchorCues | None = None
    correction: AnchorCues | None = None
    turn: LaterMessages = LaterMessages()
    kinds: Mapping[str, Pattern] = {}
    """By kind of technology (``database``, ...), the words for a thing of that kind: ``our main database``."""


class Cues(Section):
    """Patterns of important sentences of any speaker. They are tried on texts of every language."""

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
    """Patterns of talk around the content, for the offline summarizer. They are tried on texts of every language."""

    in_words: Patterns = ()
    """Counts and times in words: they are as exact as a number, but are not found as identifiers."""
    pleasantry: Patterns = ()
    """The beginning of a sentence that is only polite talk."""
    filler: Patterns = ()
    """Words before the actual statement, followed by a punctuation mark; they are left out."""
    acceptance: Patterns = ()
    rejection: Patterns = ()
    """The beginnings of answers that accept or reject something."""
    proposal: Patterns = ()
    non_answer: Patterns = ()
    style_wish: Patterns = ()
    """Wishes for the style of the answers."""
    frustration: Patterns = ()
    distress: Patterns = ()
    relief: Patterns = ()
    negated: Patterns = ()
    """Words before a feeling that say that it is not felt."""
    delight: Patterns = ()
    polite: Patterns = ()
    informal: Patterns = ()
    understood: Patterns = ()
    """The beginning of a message whose writer has understood an explanation."""
    headings: Patterns = ()
    """Headings in capitals that only say which kind of statement follows the colon; their case counts."""
    letters: Words = ()
    """The names of the first lines of a pasted letter, without their colon; their case counts."""


class Orders(Section):
    """Sentences that give orders to the reader of a record.

    Each list from ``must`` on is one pattern of whole words. Orders composed of a missing list are not recognised.
    """

    assistant: Pattern
    """Names for those who are addressed, the assistant and later readers; the forms refer to it by ``{assistant}``."""
    must: Pattern = ""
    """Words that bind: "must", "is to", "may not"."""
    replies: Pattern = ""
    """Words for what the assistant says from now on: "every answer", "questions about"."""
    speech: Pattern = ""
    """Words for acts of speech: "mention", "recommended", "criticism"."""
    strict: Pattern = ""
    """Words for "for ever" or "not at all": "always", "no longer", "forbidden"."""
    hiding: Pattern = ""
    """Words for keeping something from the user."""
    rules: Pattern = ""
    """Words for what was asked for before: "earlier instructions"."""
    void: Pattern = ""
    """Words for cancelling rules: "disregard", "lifted"."""
    reported: Pattern = ""
    """Words that show that a sentence reports an order and does not give one: "asked", "agreed", "according"."""
    forms: Patterns
    """Patterns of the beginning of a sentence that is an order; at most ten."""


class Claims(Section):
    """Patterns that show what kind of claim a sentence makes; whole words unless a field says otherwise."""

    supposed: Patterns = ()
    """Words that call something a hypothesis, a guess or a probability."""
    gone: Patterns = ()
    """Patterns whose group names what is given up; not whole words."""
    under_way: Patterns = ()
    done: Patterns = ()
    not_done: Patterns = ()
    progress: Words = ()
    """Words for the progress of a task, which do not say which task it is."""
    obstacles: Patterns = ()
    """Words that say that something is in the way."""
    wanted: Patterns = ()
    """Words that say that somebody asks for something."""
    stated: Patterns = ()
    """Patterns of plain statements that a record must hold; not whole words."""
    defined: Patterns = ()
    """Words that explain a term."""
    steps: Patterns = ()
    step: Pattern = ""
    """Words about the course of work, and the word before a step's number."""
    own: Patterns = ()
    """Pronouns for the speaker and the person spoken to: "I", "your"."""
