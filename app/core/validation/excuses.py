"""Texts in which a model talks about its task instead of doing it: refusals, and requests for input."""

from __future__ import annotations

import re
from typing import Final

from app.core.text.patterns import compiled

_OPENING: Final = (
    r"\W*(?:(?:sure|certainly|of course|okay|ok|hello|hi|well|unfortunately|конечно|хорошо|к сожалению|здравствуйте)"
    r"\b[\s,.!:—-]*){0,2}"
)
_EXCUSES: Final = (
    # English: refusals in the first person, requests for input, and "there is nothing here"
    (
        r"(?:i['’]?m|i am)\s+(?:very\s+|so\s+)?(?:sorry|afraid)\b.{0,40}\b(?:can(?:['’]?t|not)|unable|don['’]?t|do not"
        r"|won['’]?t|but)"
    ),
    (
        r"(?:sorry,?\s+(?:but\s+)?)?i\s+(?:can(?:['’]?t|\s?not)|am unable to|am not able to|won['’]?t|will not"
        r"|must decline to|do not feel comfortable)\s+(?:\w+\s+){0,2}(?:help|assist|provide|create|generate|produce"
        r"|process|fulfil|fulfill|complete|comply|continue|summari[sz]e|do (?:that|this)|record|answer|discuss)"
    ),
    r"as an? (?:ai|artificial intelligence|(?:large )?language model)(?: (?:language )?(?:model|assistant))?,?\s+i\b",
    (
        r"(?:could|can|would) you (?:please )?(?:provide|share|paste|send|give)\b.{0,60}"
        r"\b(?:conversation|messages?|transcript|text|chat|content|history|dialogue)"
    ),
    (
        r"please (?:provide|share|paste|send|give|supply|upload)\b.{0,60}"
        r"\b(?:conversation|messages?|transcript|text|chat|content|history|dialogue|details|information)"
    ),
    (
        r"(?:there (?:is|are|was|were) no|no|i (?:do not|don['’]?t) (?:see|have) (?:any|a|the|access to(?: the| any)?))"
        r"\s+(?:\w+\s+){0,2}(?:conversation|messages?|transcript|text|chat|content|history|dialogue)\b"
        r"(?:\s+(?:history|content|text|messages?|here|yet))*\s*"
        r"(?:(?:was|were|is|has been|have been)\s+(?:\w+\s+)?(?:provided|given|shared|available|found|included|present)"
        r"|to (?:summari[sz]e|record|process|compress)|provided|available|above"
        r"|in (?:your|the) (?:message|request|input)|[.!]|$)"
    ),
    r"i(?:['’]?m| am) (?:ready|happy) to (?:help|assist|summari[sz]e|record)\b",
    r"how (?:can|may) i (?:help|assist)\b",
    # Russian
    r"(?:извините|простите|прошу прощения),?\s+(?:но\s+)?(?:я\s+)?(?:не\s+(?:могу|смогу|вижу|имею)|как\s+)",
    (
        r"(?:я\s+)?не\s+(?:могу|смогу)\s+(?:\w+\s+){0,2}(?:помочь|выполнить|предоставить|создать|составить|обработать"
        r"|продолжить|обсуждать|ответить|суммировать|сжать)"
    ),
    r"как\s+(?:языковая\s+модель|искусственный\s+интеллект|ии),?\s+я\b",
    (
        r"(?:пожалуйста,?\s+)?(?:предоставьте|пришлите|отправьте|вставьте|дайте|скиньте|поделитесь)(?:,?\s+пожалуйста,?)?"
        r"\s+(?:\w+\s+){0,3}(?:беседу|беседы|беседой|переписк\w*|разговор\w*|диалог\w*|сообщени\w*|текст\w*|истори\w*)"
    ),
    (
        r"(?:беседа|переписка|разговор|диалог|сообщения|текст|история)\s+(?:\w+\s+){0,2}"
        r"(?:не\s+(?:предоставлен\w*|найден\w*|указан\w*|передан\w*)|отсутству\w+)"
    ),
    r"(?:нет|отсутствуют)\s+(?:\w+\s+){0,2}(?:сообщений|сообщения|беседы|переписки|диалога|текста)\s+(?:для|чтобы)",
    r"чем\s+(?:я\s+)?могу\s+(?:вам\s+)?помочь",
    # others: the two sentences that models say most
    r"(?:lo siento|je suis désolé\w*|es tut mir leid|mi dispiace|desculpe|sinto muito|很抱歉|抱歉|对不起|申し訳)",
    r"(?:por favor,? (?:proporcion|comparte|envía)|veuillez (?:fournir|partager)|请提供)",
    r"bitte (?:geben|stellen|senden) sie",
)
_EXCUSE: Final = compiled(rf"{_OPENING}(?:{'|'.join(_EXCUSES)})", re.IGNORECASE)


def is_excuse(text: str) -> bool:
    """Whether a text begins like a model that talks about its task instead of doing it.

    Only the beginning counts, in the first person or as a request: a record that tells of such a sentence in the third
    person ("the assistant could not help with …") is a record.
    """
    return _EXCUSE.match(text[:400]) is not None
