"""What a new text makes untrue of an earlier one, also when the model forgot to say so.

Three plain cases, each meant to miss rather than to mistake: the new text, or the message it rests on, names what goes
("MySQL instead of Postgres"); a message corrects, and the new text says another thing where the old one said one ("no,
MySQL"); what was under way is done. A thing for another purpose, or of another kind, makes nothing untrue.
"""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.core.anchors.contrast import tells_of_another
from app.core.anchors.slots import adds, apart, purpose
from app.core.anchors.tables import TABLES
from app.core.anchors.topics import topic_of
from app.core.model.candidate import CandidateItem
from app.core.model.conversation import Message
from app.core.text.identifiers import find_identifiers
from app.core.text.patterns import compiled
from app.core.text.sameness import canonical
from app.core.text.sentences import sentences
from app.core.text.word_lists import TECHNOLOGY
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stem, stems

_OUSTED: Final = compiled(
    r"\b(?:instead of|rather than|no longer|not|scrap|drop(?:ped)?|ditch(?:ed)?|replac(?:es?|ed|ing)"
    r"|moved? away from|switch(?:ed)? from|вместо|а не"
    r"|больше не|отказал\w+ от|заменил\w*|statt|anstatt|au lieu de|en lugar de)\s+(?:the |an? |our |my |use |using "
    r"|использу\w+ )?([^\W\d_][\w.+#-]{0,40})"
    r"|(?:不用|不再用|代替|取代|而不是)([a-z][\w.+#-]{0,40})",
    re.IGNORECASE,
)
_CORRECTS: Final = compiled(
    r"\A\W*(?:no\b|nope\b|actually\b|wait\b|correction\b|sorry\b|scratch that|on second thought|make that|hmm,? no"
    r"|нет\b|вернее\b|точнее\b|стоп\b"
    r"|поправк\w+|извини\w*|не(?:т уж)?,|不对|不是|更正|其实|nein\b|doch\b|non\b)"
    r"|\b(?:instead|changed? (?:my|our|his|her|their) minds?|i was wrong|i meant|let['’]?s (?:rather|switch)"
    r"|switch(?:ed|ing)? (?:to|from|over)"
    r"|no longer|rather than|вместо|передумал\w*|ошиб(?:ся|лась|лись)|имел\w* в виду|перейд[её]м|замени\w*"
    r"|больше не|лучше|statt|plutôt|mejor)\b"
    r"|改成|改为|换成|而不是|改用",
    re.IGNORECASE,
)
_UNDER_WAY: Final = compiled(
    r"\b(?:in progress|under way|underway|ongoing|working on|work on|started|starting|begun|pending|waiting (?:for"
    r"|on)|awaits?|awaiting|to do|todo"
    r"|plans? to|planned|planning|intends? to|is going to|will|needs? to|has to|must|not yet|still|being \w+ed"
    r"|в процессе|в работе|работает над"
    r"|начал\w*|начат\w*|ид[её]т|жд[её]\w*|ожида\w+|план\w+|собира\w+|предстоит|нужно|надо|ещё не|еще не|пока не"
    r"|in arbeit|geplant|en cours|en curso)\b"
    r"|进行中|正在|计划|打算|还没|待|等待",
    re.IGNORECASE,
)
_DONE: Final = compiled(
    r"\b(?:done|finished|completed?|ready|fixed|solved|resolved|shipped|deployed|released|merged|closed|delivered|sent|paid|booked|signed|over"
    r"|arrived|submitted|published|готов\w*|законч\w+|заверш\w+|сделан\w*|исправ\w+|реш[её]н\w*|выпущен\w*|развернут\w*|отправлен\w*|оплачен\w*"
    r"|подписан\w*|доставлен\w*|забронирован\w*|fertig|erledigt|abgeschlossen|terminé|terminado)\b|完成|已经|解决了|结束|上线了|做完",
    re.IGNORECASE,
)
_NOT_DONE: Final = compiled(
    r"\b(?:not|n['’]t|un\w+|almost|nearly|when|once|until|will be|to be|half|не|почти|когда|пока|будет|nicht|fast"
    r"|pas|no)\b|没|未|快要|将",
    re.IGNORECASE,
)
_LABELLED: Final = compiled(r"([^:：\n]{2,40})[:：]\s?([^:：,;\n]{1,60})")
"""A label and its value: the value is the answer, unless the label only says who speaks."""
_SAME_TASK: Final = 0.6  # of the smaller text's content, for "was under way" and "is done" to be one task
_SAME_FRAME: Final = 0.5  # of the words around a term, for two texts to be two answers to one question
_FEW: Final = 3  # content words: an entry that says hardly more than the term that goes
_POSTINGS: Final = 64  # entries per word that are looked at

_ALTERNATIVES: Final = tuple(
    frozenset(stem(word) for word in row.split())
    for row in """postgres postgresql mysql mariadb sqlite mongo mongodb oracle cassandra dynamodb cockroachdb couchdb
        |kafka rabbitmq nats activemq sqs|aws gcp azure heroku hetzner digitalocean|react vue angular svelte solid
        |django flask fastapi rails laravel express|docker podman|github gitlab bitbucket|redis valkey memcached
        |python java golang rust kotlin scala ruby php typescript javascript|mac windows linux|npm yarn pnpm
        |jenkins circleci travis|slack teams discord telegram whatsapp|постгрес мускул""".split("|")
)
"""Things of which one is chosen, that texts name without a common word around them."""


class Texts:
    """Texts by the words they hold."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in _said(text).words:
                self._places[word].append(place)

    def outdated_by(self, item: CandidateItem, messages: Mapping[int, Message]) -> list[int]:
        """Places of the texts that an item makes untrue, in order."""
        corrections = corrections_of(item, messages)
        named = frozenset[str]().union(*map(_ousted, (item.text, *corrections)))
        changing = any(not adds(sentence, TABLES) for sentence in corrections)
        about = self._about(item.text, named)
        return [place for place in about if _makes_untrue(item.text, self._texts[place], named, changing=changing)]

    def _about(self, text: str, named: frozenset[str]) -> list[int]:
        """Places of texts that share a word with this one, or hold one of these words, in order."""
        said = _said(text)
        wanted = {*said.words, *named}
        wanted.update(word for group in _ALTERNATIVES if group & said.words for word in group)
        return sorted({place for word in wanted for place in self._places.get(word, ())[:_POSTINGS]})


@dataclass(frozen=True, slots=True)
class _Said:
    words: frozenset[str]
    """All content, words too common in talk included."""
    terms: frozenset[str]
    """Names, technology and values: what an answer to a question would be."""

    @property
    def content(self) -> frozenset[str]:
        return self.words - GENERIC_STEMS

    @property
    def frame(self) -> frozenset[str]:
        return self.words - self.terms


@lru_cache(maxsize=4_096)
def _said(text: str) -> _Said:
    words = frozenset(stems(text)) - FRAME_STEMS
    terms = {word for found in find_identifiers(text) for word in stems(found.text)}
    terms |= words & _TECHNOLOGY
    labelled = _LABELLED.fullmatch(text)
    if labelled and not FRAME_STEMS.issuperset(stems(labelled[1])):
        terms |= set(stems(labelled[2]))
    return _Said(words=words, terms=frozenset(terms) & words)


_TECHNOLOGY: Final = frozenset(stem(word) for word in TECHNOLOGY)


def _makes_untrue(text: str, earlier: str, named: frozenset[str], *, changing: bool) -> bool:
    """Whether an earlier text does not hold any more once this one does.

    Args:
        text: The later one.
        earlier: The one that may not hold any more.
        named: Words of which it is said that they go.
        changing: Whether something is corrected, and not only added.
    """
    new, old = _said(text), _said(earlier)
    if canonical(text) == canonical(earlier) or not old.words:
        return False
    if _names_what_goes(new, old, named):
        return True
    if changing and _answers_otherwise(new, old) and not _is_for_another(text, earlier):
        return True
    return _completes(text, new, earlier, old)


def _names_what_goes(new: _Said, old: _Said, named: frozenset[str]) -> bool:
    """Whether a term of the old text is said to go, and the rest of it is spoken of, or there hardly is a rest."""
    gone = named & old.terms
    rest = old.content - gone
    if not gone or not (new.terms - gone or new.content - gone):
        return False
    return len(old.content) <= _FEW or len(rest & new.words) >= _SAME_FRAME * len(rest)


def _is_for_another(text: str, earlier: str) -> bool:
    """Whether both tell of different things, by their kind or by what they are for."""
    new, old = topic_of(text), topic_of(earlier)
    if new.kinds and old.kinds and not new.kinds & old.kinds:
        return True
    if apart(new, old, purpose(text, TABLES), purpose(earlier, TABLES)):
        return True
    return tells_of_another(text, new, earlier, old, TABLES, as_="correction")


def _answers_otherwise(new: _Said, old: _Said) -> bool:
    """Whether both give one answer to the same question, and not the same one."""
    if not new.terms or not old.terms or new.terms & old.terms:
        return False
    if any(group & new.terms and group & old.terms for group in _ALTERNATIVES):
        return True
    smaller = min(len(new.frame), len(old.frame))
    return bool(smaller) and len(new.frame & old.frame) >= max(1, _SAME_FRAME * max(len(new.frame), len(old.frame)))


def _completes(text: str, new: _Said, earlier: str, old: _Said) -> bool:
    """Whether the old text tells of a task under way that the new one tells is done."""
    if not _UNDER_WAY.search(earlier) or _DONE.search(earlier) or not _DONE.search(text) or _NOT_DONE.search(text):
        return False
    task = {word for word in old.content if word not in _PROGRESS_STEMS}
    done = {word for word in new.content if word not in _PROGRESS_STEMS}
    shared = task & done
    return (
        bool(shared) and len(shared) >= _SAME_TASK * min(len(task), len(done)) and not (old.terms - new.terms - shared)
    )


_PROGRESS_STEMS: Final = frozenset(
    stem(word)
    for word in """progress way underway ongoing working work started starting begun pending waiting awaits awaiting
        todo plans
        planned planning intends going needs still done finished completed complete ready fixed solved resolved shipped
        deployed released merged closed delivered sent paid booked signed arrived submitted published
        процесс процессе работе работает начал начала начали начата начат идёт идет ждёт ждет ждут ожидает ожидается
        планирует
        планируется собирается предстоит готов готова готово закончил закончила закончен завершил завершена завершён
        завершили
        сделано сделана исправлено исправил решено отправлен оплачен подписан доставлен""".split()
)


def _ousted(text: str) -> frozenset[str]:
    """Words that a text says go."""
    return frozenset(stem((one or other).lower()) for one, other in _OUSTED.findall(text))


def corrections_of(item: CandidateItem, messages: Mapping[int, Message]) -> list[str]:
    """The sentences among an item's sources that correct something."""
    return [
        sentence
        for seq in item.from_seqs
        if seq in messages and messages[seq].role in {"user", "assistant"}
        for sentence in sentences(messages[seq].content)
        if _CORRECTS.search(sentence)
    ]
