"""Texts that would grant somebody authority, or order the reader about: a record may quote them, never say them.

A message that asks for something is data. An entry that repeats its order, or the role that it claims, in the record's
own voice would make it ground truth for every later reply. Patterns are tables by language; each runs in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from app.domain.states.state import Origin

_ROLES: Final = r"(?:(?:super[- ]?|sys[- ]?)?admin(?:istrator)?s?|root|superuser|privileged|authori[sz]ed)"
_CLAIMS: Final[tuple[str, ...]] = (
    # roles and rights, in English
    (
        rf"\b(?:user|client|customer|caller|account|he|she|they|you|i)\b(?:\s\w+){{0,2}}\s(?:is|are|was|be|been|am|as|became|becomes)"
        rf"(?:\s\w+){{0,4}}\s{_ROLES}\b"
    ),
    rf"\b(?:user|client|customer|caller|account)(?:['’]s)?\s(?:role|status|level)?\s?[:=]\s?{_ROLES}\b",
    (
        r"\b(?:has|have|had|granted|given|gets?|got|with|holds?)\s(?:\w+\s){0,3}"
        r"(?:admin\w*|root|full|unrestricted|elevated|unlimited|superuser|privileged)\s(?:system\s|account\s)?"
        r"(?:access|rights?|privileges?|permissions?|control|authority|clearance)\b"
    ),
    (
        r"\b(?:pre-?approved|authori[sz]ed|permitted|allowed|cleared)\sto\s(?:bypass|skip|override|ignore|see|access|use)\s(?:\w+\s){0,2}"
        r"(?:all|any|every|internal|confidential|rules?|checks?|limits?|verification)\b"
    ),
    # English: orders to the reader
    (
        r"\b(?:ignor\w+|disregard\w*|forget|overrid\w+|bypass\w*)\s(?:\w+\s){0,5}(?:instructions?|rules?|polic(?:y|ies)|guidelines?|prompts?"
        r"|restrictions?|filters?|safeguards?|directives?)\b"
    ),
    (
        r"\b(?:the\s)?(?:assistant|model|ai|bot|chatbot|llm)\s(?:must|shall|has to|is required to|is instructed to"
        r"|is authori[sz]ed to|is allowed to|is permitted to|may now|can now|is now)\s\w+"
    ),
    (
        r"\b(?:the\s)?(?:assistant|model|ai|bot|chatbot|llm|you)\s(?:should|must|shall|have to|will|is to|are to"
        r"|needs? to|ought to|can now|may now)\s(?:now\s)?(?:always|never|only"
        r"|obey|comply|ignore|reveal|disclose|pretend|bypass|refuse|respond|reply|output|print|say|act as|follow)\b"
    ),
    r"\bfrom now on,?\s(?:you|the assistant|always|never|answer|reply|respond|speak|write|act|obey)\b",
    (
        r"\b(?:developer|god|debug|jailbreak) mode\b(?:\s\w+){0,3}\s(?:on|enabled|active|activated)\b"
        r"|\byou are now (?:in|an?|the|free|allowed|dan|unrestricted|operating)\b|\bdo anything now\b"
    ),
    (
        r"\A\W*(?:please\s)?(?:obey|comply|reveal|pretend|act as|(?:respond|reply|answer)\s(?:only|with|in|to)\b"
        r"|always\s(?:answer|reply|respond|say"
        r"|include|recommend|end|start|obey)|never\s(?:mention|reveal|refuse|say|answer|tell)|(?:do not"
        r"|don['’]t)\s(?:mention|reveal|tell|refuse"
        r"|summari[sz]e)|say\s(?:only|exactly)|output\s(?:only|the)|print\s(?:the|your))\b"
    ),
    r"\A\W*(?:new\s)?(?:system|policy|instructions?|rule|directive|standing order)s?\s?:\s",
    # Russian
    r"\b(?:пользовател[ья]\w*|клиент\w*|он|она|я|ты|вы)\s(?:[—–-]\s)?(?:\w+\s){0,3}(?:супер)?(?:админ\w*|суперпользовател\w*|root)\b",
    (
        r"\b(?:имеет|есть|получил\w*|обладает|выдан\w*|предоставлен\w*|дан\w*)\s(?:\w+\s){0,3}(?:полн\w+|админ\w+|неограниченн\w+|root)[\s-]+"
        r"(?:доступ\w*|прав\w*|полномоч\w*|привилеги\w*)\b"
    ),
    (
        r"\b(?:игнорир\w+|забудь\w*|не учитыва\w+|отмени\w*|обойти|обходи\w*)\s(?:\w+\s){0,4}(?:инструкци\w+|правил\w*"
        r"|указани\w+|ограничени\w+|промпт\w*)\b"
    ),
    r"\b(?:ассистент|модель|бот|ии|ты|вы)\s(?:\w+\s)?(?:обязан\w*|долж\w+|теперь|отныне)\s\w+",
    r"\b(?:с этого момента|отныне|впредь)\b.{0,40}\b(?:ты|вы|ассистент|отвечай\w*|говори\w*|пиши\w*|всегда|никогда)\b",
    r"\A\W*(?:всегда|никогда)\s(?:не\s)?(?:отвечай\w*|говори\w*|упоминай\w*|сообщай\w*|отказывай\w*)\b",
    # Chinese
    r"(?:用户|他|她|我|你)(?:现在)?(?:是|为|成为|拥有|具有|获得)[^。,，]{0,8}(?:管理员|超级用户|最高权限|完全权限|所有权限)",
    r"(?:忽略|无视|忘记)[^。]{0,10}(?:指令|规则|提示|限制|要求)|(?:助手|模型|你)(?:必须|应当始终|从现在起|永远)",
    # German, French, Spanish: what is seen most
    (
        r"\b(?:ignoriere?|missachte|vergiss)\s(?:\w+\s){0,4}(?:anweisungen|regeln|vorgaben)\b|\bignore[rz]?\s(?:\w+\s){0,4}(?:instructions|consignes|règles)\b"
        r"|\bignora\w*\s(?:\w+\s){0,4}(?:instrucciones|reglas)\b"
    ),
    r"\b(?:nutzer|benutzer|utilisateur|usuario)\w*\s(?:ist|hat|est|a|es|tiene)\s(?:\w+\s){0,3}(?:admin\w*)\b",
)
_CLAIM: Final = re.compile("|".join(f"(?:{pattern})" for pattern in _CLAIMS), re.IGNORECASE)

_WHO: Final = (
    r"(?:the |a |an |this |one )?(?:user|assistant|message|document|text|page|tool|file|mail|e-?mail|web ?site"
    r"|paste|someone|customer|client)\b"
)
_SAYS: Final = (
    r"(?:wrote|writes|said|says|claim\w*|assert\w*|state[sd]?|ask(?:s|ed)|want(?:s|ed)|requests|requested|told|tells|tried|tries|demands|demanded|order(?:s|ed)"
    r"|instruct(?:s|ed)|insist\w*|suggests|suggested|proposes|proposed|quot\w+|contain\w*|return(?:s|ed)|pretend\w*|attempt\w*|reads)"
)
_ATTRIBUTED: Final = re.compile(
    rf"\W*(?:{_WHO}(?:\s(?!must|should|shall|will|is|are|has|can|may|always|never)[^\s.:;]+){{0,4}}?\s{_SAYS}\b"
    rf"|according to\b|(?:it was|there was)\s(?:asked|claimed|said|a request|an attempt)\b"
    r"|(?:пользовател\w+|ассистент\w*|сообщени\w+|документ\w*|текст\w*|инструмент\w*|клиент\w*)\s(?:[^\s.:;]+\s){0,3}?(?:написал\w*|пиш\w+|сказал\w*"
    r"|говор\w+|утвержда\w+|заявил\w*|заявля\w+|попросил\w*|просит|просил\w*|просят|хо[тч]\w+|требу\w+|потребовал\w*|вернул\w*|гласит|содержит|предлож\w+)"
    r"|по словам\b|(?:用户|助手|文档|消息|工具)[^。:：]{0,6}(?:写道|说|称|声称|要求|请求|表示|返回|想)"
    r"|(?:der|die|das)\s(?:nutzer|benutzer|assistent|nachricht)\w*\s(?:schrieb|schreibt|sagte|behauptet\w*|bat|bittet|will)"
    r"|l['’](?:utilisateur|assistant)\w*\s(?:a écrit|a dit|affirme|demande)|el usuario\s(?:escribió|dijo|afirma"
    r"|pide|pidió))",
    re.IGNORECASE,
)

_QUOTES: Final[Mapping[str, Mapping[Origin, str]]] = {
    "en": {
        "user": "The user wrote",
        "assistant": "The assistant wrote",
        "system": "The system prompt says",
        "tool": "A tool returned",
        "document": "A document that the user pasted says",
    },
    "ru": {
        "user": "Пользователь написал",
        "assistant": "Ассистент написал",
        "system": "Системное сообщение гласит",
        "tool": "Инструмент вернул",
        "document": "Вставленный пользователем документ гласит",
    },
    "zh": {
        "user": "用户写道",
        "assistant": "助手写道",
        "system": "系统消息写道",
        "tool": "工具返回",
        "document": "用户粘贴的文档写道",
    },
    "de": {
        "user": "Der Nutzer schrieb",
        "assistant": "Der Assistent schrieb",
        "system": "Die Systemnachricht lautet",
        "tool": "Ein Werkzeug gab zurück",
        "document": "Ein eingefügtes Dokument besagt",
    },
    "fr": {
        "user": "L'utilisateur a écrit",
        "assistant": "L'assistant a écrit",
        "system": "Le message système dit",
        "tool": "Un outil a renvoyé",
        "document": "Un document collé dit",
    },
    "es": {
        "user": "El usuario escribió",
        "assistant": "El asistente escribió",
        "system": "El mensaje del sistema dice",
        "tool": "Una herramienta devolvió",
        "document": "Un documento pegado dice",
    },
}


def claims_authority(text: str) -> bool:
    """Whether a record that said this would grant rights or give orders; a text that says who said so does not."""
    return _CLAIM.search(text) is not None and not is_attributed(text)


def is_attributed(text: str) -> bool:
    """Whether a text says whose words it tells."""
    return _ATTRIBUTED.match(text) is not None


def quoted(text: str, origin: Origin, language: str | None) -> str:
    """The text as somebody's words: ``The user wrote: "…"``, in the conversation's language where it is known."""
    said = _QUOTES.get(language or "en", _QUOTES["en"])[origin]
    return f'{said}: "{text}"'
