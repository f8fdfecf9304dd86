"""Sections about words and sentences: common words, questions, clauses, replies, terms."""

from __future__ import annotations

from app.core.text.languages.kinds import Pattern, Patterns, Section, Words


class CommonWords(Section):
    """Words that say little. Those of all languages are left out of a text of any language."""

    function: Words = ()
    """Words that carry grammar and no content, in lower case. They distinguish a language from others of its script:
    without them it is detected only if it is the only language of its script."""
    content: Words = ()
    """Words with content here that are grammar in other languages: "die" in English."""
    generic: Words = ()
    """Content words too common in talk to name a topic."""
    frame: Words = ()
    """Words with which a record reports: who spoke, and that something was said."""
    technology: Words = ()
    """Names of technology that are written like ordinary words."""
    spelled_alike: Words = ()
    """Pairs of letters: a word may be written with either, and is compared in the spelling with the second."""
    signs: Words = ()
    """In languages without spaces: characters that are function words, or parts of very many words."""


class Questions(Section):
    """Patterns of what questions ask for and what answers look like. They are searched in lower case."""

    when: Patterns = ()
    how_many: Patterns = ()
    time: Patterns = ()
    time_words: Words = ()
    """Patterns and words by which a message says when something was; plain words are found fastest."""
    number: Patterns = ()
    first_person: Patterns = ()
    first_person_words: Words = ()
    told: Patterns = ()
    """How a question refers to what the assistant said before."""
    user: Patterns = ()
    assistant: Patterns = ()
    """The names of the two sides in a question about a conversation."""
    hello: Pattern = ""
    """Words before the name of the person spoken to."""
    called: Pattern = ""
    """Words before the speaker's own name."""
    courtesies: Pattern = ""
    """The words of a message that is only polite talk."""
    fillers: Pattern = ""
    """Words that may stand beside such talk."""
    courtesy_signs: str = ""
    """In languages without spaces: single characters of the same kind."""
    instructions: Pattern = ""
    """Words that ask for work on a text in the same message."""
    points_back: Pattern = ""
    """Words that say that something was already said or is already known."""


class Sentences(Section):
    """Words after which a full stop does not end a sentence; in lower case, without the last full stop."""

    abbreviations: Words = ()
    """Abbreviations after which a sentence never ends."""
    abbreviations_at_ends: Words = ()
    """Abbreviations after which a sentence ends only if the next word is capitalised, and no name of a month or day."""
    before_ordinals: Words = ()
    """For languages whose ordinals have a full stop: words after which the full stop of a number of at most two digits
    belongs to the number ("im 3. Stock")."""
    short_words: Words = ()
    """Words of one or two letters that are not abbreviations."""


class Clauses(Section):
    """Words that separate or connect the clauses of a sentence, or point to the sentence before; as whole words."""

    reasons: Patterns = ()
    """Conjunctions with which a clause begins, even without a punctuation mark before them."""
    links: Patterns = ()
    """Conjunctions with which a clause begins after a comma."""
    subjects: Patterns = ()
    """The beginnings of clauses with a subject of their own; not whole words."""
    ties: Patterns = ()
    """Words that only connect a sentence to the one before; their case counts."""
    binds: Patterns = ()
    """Words that reverse or limit the rest of their sentence, and are therefore never cut off."""
    bounds: Patterns = ()
    """Negations and conditions. If a part with one of them were cut, the rest could say the contrary."""
    contrasts: Patterns = ()
    """Further words, beside ``bounds`` and ``binds``, that limit the clause before: a contrast, a condition, an end."""
    turns: Words = ()
    """Words that reverse or limit what the rest says."""
    articles: Words = ()
    """Articles, which are ignored when two texts are compared."""
    addressed: Patterns = ()
    """Pronouns for the person spoken to."""
    unresolved: Patterns = ()
    """Beginnings that point to something said before."""
    open_beginnings: Patterns = ()
    open_ends: Patterns = ()
    """The beginnings and ends of sentences that cannot be understood alone."""
    open_subjects: Patterns = ()
    """Subjects that may mean something else each time."""
    equates: Patterns = ()
    """The words between a subject and what is said about it."""
    corrects: Patterns = ()
    """The beginnings of sentences that correct the sentence before of the same speaker ("No, in Graça.")."""


class Refusals(Section):
    """Patterns of the beginning of a text in which a model talks about its task instead of doing it."""

    openings: Patterns = ()
    """Words that may stand before such a beginning."""
    forms: Patterns = ()
    errors: Words = ()
    """The beginnings of error texts; their case counts."""


class Replies(Section):
    """Patterns of what the offline responder is asked for."""

    asks: Patterns = ()
    """The beginnings of messages that want an answer."""
    asks_for_all: Patterns = ()
    greets: Patterns = ()
    thanks: Patterns = ()
    """The beginnings of messages that greet or thank."""
    notice: Patterns = ()
    """A part of the responder's own notice (``offline.notice`` in the catalogue), by which its replies are known."""


class Terms(Section):
    """Which words can name a topic, and how words are inflected."""

    function: Words = ()
    """The most common function words, if the section ``words`` has no list of them."""
    determiners: Words = ()
    before_verbs: Words = ()
    """The word after a determiner is mostly a noun, the word after one of ``before_verbs`` a verb."""
    verbs: Patterns = ()
    adjectives: Patterns = ()
    """Patterns of verbs and adjectives: whole words in lower case that are hardly ever nouns."""
    predicate_endings: Patterns = ()
    """Endings of words that name nothing."""
    courtesies: Words = ()
    """Words and stems that do not change the meaning of a statement."""
    grammar_signs: Words = ()
    """In languages without spaces: characters for grammar and number, which no term contains."""
    alphabet: str = ""
    """The letters of the language, with which misspelled words are looked for."""
    ending_vowels: str = ""
    """In languages that inflect names: the letters of their endings."""
    endings: Words = ()
    """Endings of inflected words, in the order in which they are tried. They must never change: stems are stored."""


class Related(Section):
    """Related words, by general knowledge: "pets" is answered by "dog"."""

    kinds: str = ""
    """Lines with words that ask for a kind, a colon, and words of that kind."""
    forms: str = ""
    """Irregular forms, spellings of chats, and synonyms; words that belong together are separated by slashes."""
