"""Sections about words and sentences: common words, questions, clauses, replies, terms."""

from __future__ import annotations

from app.core.text.languages.kinds import Pattern, Patterns, Section, Words


class CommonWords(Section):
    """Words that say little. Those of all languages are left out of a text of any language."""

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
    spelled_alike: Words = ()
    """Pairs of letters: a word may be written with either, and is compared with the second."""
    signs: Words = ()
    """Where words are not spaced: characters that are function words, or parts of very many words."""


class Questions(Section):
    """What questions ask for, what answers look like; searched in lower case."""

    when: Patterns = ()
    how_many: Patterns = ()
    time: Patterns = ()
    time_words: Words = ()
    """Both: by which a message says when something was; mere words are found fastest."""
    number: Patterns = ()
    first_person: Patterns = ()
    first_person_words: Words = ()
    told: Patterns = ()
    """What a question says of what the assistant said before."""
    user: Patterns = ()
    assistant: Patterns = ()
    """What a question about a conversation calls its two sides."""
    hello: Pattern = ""
    """What stands before the name of who is spoken to."""
    called: Pattern = ""
    """What stands before the speaker's own name."""
    courtesies: Pattern = ""
    """What a message may consist of that only keeps up the talk."""
    fillers: Pattern = ""
    """What may stand beside it."""
    courtesy_signs: str = ""
    """Single characters of the same kind, where words are not spaced."""
    instructions: Pattern = ""
    """What asks to work on a text that comes along."""
    points_back: Pattern = ""
    """What says that something was said, or is known, already."""


class Sentences(Section):
    """Where a sentence does not end though a full stop stands there; all in small letters, without their last one."""

    abbreviations: Words = ()
    """A sentence ends after none of them."""
    abbreviations_at_ends: Words = ()
    """A sentence ends after them only where the next word begins with a capital, and that is no name of a day."""
    before_ordinals: Words = ()
    """Where ordinals have a full stop: before a number of two digits it belongs to the number ("im 3. Stock")."""
    short_words: Words = ()
    """Words of one or two letters that are no abbreviations."""


class Clauses(Section):
    """What parts and ties the clauses of a sentence, and what needs the sentence before; whole words."""

    reasons: Patterns = ()
    """Conjunctions that a clause begins with, without a mark before them too."""
    links: Patterns = ()
    """Those that follow a comma."""
    subjects: Patterns = ()
    """What a clause begins with that has a subject of its own; not whole words."""
    ties: Patterns = ()
    """What only ties a sentence to the one before; its case counts."""
    binds: Patterns = ()
    """What turns or bounds the rest of its sentence, which is therefore never cut off."""
    bounds: Patterns = ()
    """A negation or a condition: without what stands under it, the rest would say the contrary."""
    contrasts: Patterns = ()
    """What limits the clause before it, beside ``bounds`` and ``binds``: a contrast, a condition, an end."""
    turns: Words = ()
    """Words that turn or bound what the rest says."""
    articles: Words = ()
    """Articles: they do not count where two texts are compared."""
    addressed: Patterns = ()
    """Pronouns of who is spoken to."""
    unresolved: Patterns = ()
    """A beginning that points to something said before it."""
    open_beginnings: Patterns = ()
    open_ends: Patterns = ()
    """What a sentence begins or ends with that cannot be understood alone."""
    open_subjects: Patterns = ()
    """Subjects that may be others each time."""
    equates: Patterns = ()
    """What stands between a subject and what is said of it."""
    corrects: Patterns = ()
    """What a sentence begins with that corrects the one before it ("No, in Graça."), where one speaker said both."""


class Refusals(Section):
    """What a model writes that talks about its task instead of doing it; for the beginning of a text."""

    openings: Patterns = ()
    """What may stand before it."""
    forms: Patterns = ()
    errors: Words = ()
    """What the text of an error begins with; its case counts."""


class Replies(Section):
    """What the offline responder is asked for."""

    asks: Patterns = ()
    """For the beginning of a message that wants an answer."""
    asks_for_all: Patterns = ()
    greets: Patterns = ()
    thanks: Patterns = ()
    """Both for the beginning."""
    notice: Patterns = ()
    """A part of the responder's own notice (``offline.notice`` in the catalogue), by which its replies are known."""


class Terms(Section):
    """Which words can name a topic, and how words are inflected."""

    function: Words = ()
    """Where ``words`` has no table of function words: the commonest of them."""
    determiners: Words = ()
    before_verbs: Words = ()
    """The word after the one is mostly a noun, after the other a verb."""
    verbs: Patterns = ()
    adjectives: Patterns = ()
    """Whole words, in small letters, that are hardly nouns."""
    predicate_endings: Patterns = ()
    """Endings of words that name nothing."""
    courtesies: Words = ()
    """Words, and stems, that change nothing of a statement."""
    grammar_signs: Words = ()
    """Where words are not spaced: characters of grammar and number, of which no term holds one."""
    alphabet: str = ""
    """Its letters, by which misspelled words are looked for."""
    ending_vowels: str = ""
    """Where names have cases: the letters of their endings."""
    endings: Words = ()
    """Endings of inflected words, in the order in which they are tried. They may not change, since stems are stored."""


class Related(Section):
    """Related words, by general knowledge: "pets" is answered by "dog"."""

    kinds: str = ""
    """Words that ask for a kind, a colon, words of that kind; a line each."""
    forms: str = ""
    """Forms that no ending tells, spellings of chats, and words that mean the same; between strokes."""
