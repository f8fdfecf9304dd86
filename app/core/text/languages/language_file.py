"""The contents of a language's file, section by section. Only ``code`` and ``name`` are required.

If a file leaves something out, nothing of that kind is recognised in the language, and words of the service's own are
written in English. A section says so if something else holds for it.

The kinds of values are described in ``kinds``, each key in its section.
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
    """The contents of one file."""

    code: str
    """The ISO 639-1 code; also the name of the file."""
    name: str
    """The English name of the language, for instructions to models."""
    script: Script = "latin"
    spaced: bool = True
    """Whether its words stand between spaces."""
    words_per_token: float | None = None
    """Words for each token of a model; 0.6 if it is not given."""
    characters_per_token: float | None = None
    """Characters for each token of a model, in place of words, for languages without spaces between words."""
    in_doubt: str | None = None
    """The mark after an entry that is in doubt."""
    earlier: str | None = None
    """The words before sentences of an earlier summary that the new one leaves out, without the colon."""
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
    """By kind of technology, the things that are mostly chosen for it: of two of one kind, one replaces the other.
    ``kinds`` of ``anchors`` has the names of the kind itself."""
    serves_as: Mapping[str, Words] = {}
    """By kind, further things that are sometimes chosen for it, though they are mostly of another kind."""
    sentences: Sentences = Sentences()
    clauses: Clauses = Clauses()
    claims: Claims = Claims()
    refusals: Refusals = Refusals()
    replies: Replies = Replies()
    terms: Terms = Terms()
    exact: Exact = Exact()
