"""Proposals that were turned down: a decision needs somebody's yes, or at least nobody's no."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.domain.conversation import Message
from app.domain.words.patterns import compiled
from app.domain.words.text import GENERIC_STEMS, sentences, stems

_DECIDED: Final = compiled(
    r"\b(?:decided|decision|agreed|agreement|chose|chosen|picked|settled on|opted|will use|will go with|going with"
    r"|adopted|approved|accepted"
    r"|is using|uses|switched to|решен[оие]+|решил\w*|договорил\w*|выбра[лн]\w*|остановил\w*|соглас\w+|утверд\w+"
    r"|принят\w*|будет использовать"
    r"|использует|entschieden|beschlossen|gewählt|décidé|choisi|decidido|elegido)\b|决定|选择了|同意|采用|选定|确定使用",
    re.IGNORECASE,
)
_UNDECIDED: Final = compiled(
    r"\b(?:not|no|never|rejected|declined|refused|against|turned down|proposed|suggested|rather than|instead"
    r"|отказал\w*|отклон\w+|против|не|нет"
    r"|предлож\w+|вместо|nicht|kein\w*|abgelehnt|refusé|pas|rechazó)\b|不|没|拒绝|建议",
    re.IGNORECASE,
)
_REFUSAL: Final = compiled(
    r"\A\W*(?:no\b(?! problem| worries| doubt| idea)|nope\b|nah\b|not\b|never\b|i(?:['’]d| would) rather not"
    r"|i don['’]?t (?:want|like|think)|let['’]?s not|please don['’]?t"
    r"|don['’]?t\b|absolutely not|нет\b|не надо|не нужно|не хочу|не будем|не стоит|не соглас\w+|ни в коем|лучше не"
    r"|нет уж|nein\b|non\b|不要|不用|不行|不想|不同意|别|算了)",
    re.IGNORECASE,
)
_AFTER: Final = 2  # messages after a proposal within which it is answered


def is_refused(text: str, seqs: Sequence[int], messages: Sequence[Message]) -> bool:
    """Whether a text tells as decided what only an assistant proposed and the user turned down."""
    if _DECIDED.search(text) is None or _UNDECIDED.search(text) is not None or not seqs:
        return False
    place = {message.seq: index for index, message in enumerate(messages)}
    content = frozenset(stems(text)) - GENERIC_STEMS
    refusals = [answer for seq in seqs for answer in _answers(messages, place[seq])]
    rest = [messages[place[seq]] for seq in seqs if messages[place[seq]].role == "user"]
    agreed = [one for one in rest if not _refuses(one) and content & frozenset(stems(one.content))]
    return any(_refuses(answer) and _is_about(answer, content, messages, place) for answer in refusals) and not agreed


def _answers(messages: Sequence[Message], index: int) -> list[Message]:
    """The user's words on what the assistant said, the message itself where it is the user's."""
    following = [] if messages[index].role == "user" else messages[index + 1 : index + 1 + _AFTER]
    said = [messages[index], *following]
    return [message for message in said if message.role == "user"][:1]


def _refuses(message: Message) -> bool:
    return any(_REFUSAL.match(sentence) for sentence in sentences(message.content)[:2])


def _is_about(answer: Message, content: frozenset[str], messages: Sequence[Message], place: dict[int, int]) -> bool:
    """Whether what was refused is what the text is about, and the answer does not name it as the choice instead."""
    index = place[answer.seq]
    proposed = messages[index - 1].content if index else ""
    refused = frozenset(stems(proposed)) & content
    own = [sentence for sentence in sentences(answer.content) if not _REFUSAL.match(sentence)]
    chosen = frozenset(stem for sentence in own for stem in stems(sentence)) & content - refused
    return bool(refused) and not chosen
