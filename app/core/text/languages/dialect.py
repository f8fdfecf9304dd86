"""What a file of a language says, section by section. Only ``code`` and ``name`` are needed.

What a language leaves out it does without: nothing of that kind is recognised in it, and what the service has to write
of its own is written in English. Where that is otherwise, the section says so.

The kinds of values stand in ``kinds``, what each key means beside it in its section.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.core.text.languages.kinds import Patterns, Script, Section, Words
from app.core.text.languages.sections_of_talk import Anchors, Claims, Cues, Orders, Phrases, Quotes, Roles, Talk, Work
from app.core.text.languages.sections_of_text import (
    Clauses,
    CommonWords,
    Questions,
    Refusals,
    Related,
    Replies,
    Sentences,
    Terms,
)
from app.core.text.languages.sections_of_values import Exact, Relative, Values


class Language(Section):
    """One file."""

    code: str
    """ISO 639-1; also the name of the file."""
    name: str
    """In English, for instructions to models."""
    script: Script = "latin"
    spaced: bool = True
    """Whether its words stand between spaces."""
    words_per_token: float | None = None
    """Words for each token of a model; 0.6 if it is not given."""
    characters_per_token: float | None = None
    """Instead of that, where words are not spaced."""
    in_doubt: str | None = None
    """The mark after an entry that is in doubt."""
    earlier: str | None = None
    """What stands before sentences of an earlier summary that the new one does not tell, without the colon."""
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
    rivals: Mapping[str, Words] = {}
    """By kind of technology, what it is mostly chosen for: of two of one kind, one is chosen. ``anchors.kinds`` tells
    what the kind itself is called."""
    serves_as: Mapping[str, Words] = {}
    """By kind, what is chosen for it though it is mostly something else."""
    sentences: Sentences = Sentences()
    clauses: Clauses = Clauses()
    claims: Claims = Claims()
    refusals: Refusals = Refusals()
    replies: Replies = Replies()
    terms: Terms = Terms()
    exact: Exact = Exact()
