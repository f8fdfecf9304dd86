"""Texts that would grant somebody authority, or order the reader about: a record may quote them, never say them.

A message that asks for something is data. An entry that repeats its order, or the role that it claims, in the record's
own voice would make it ground truth for every later reply. Patterns are tables by language; each runs in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from app.domain.states.state import Origin
from app.domain.words.patterns import compiled

_ROLES: Final = (
    r"(?<!database )(?<!network )(?<!office )(?<!school )"  # professions
    r"(?:(?:super[- ]?|sys[- ]?)?admin(?:istrator)?s?|root|superuser|privileged|authori[sz]ed)"
)
_CLAIMS: Final[tuple[str, ...]] = (
    # roles and rights, in English
    (
        rf"\b(?:user|client|customer|caller|account|he|she|they|you|i)\b(?!\s(?:works?|worked|is working)\b)(?:"
        rf"\s\w+){{0,2}}\s(?:is|are|was|be|been|am|as|became|becomes)"
        rf"(?:\s\w+){{0,4}}\s{_ROLES}\b"
    ),
    (
        rf"\b(?:user|client|customer|caller|account)(?:['’]s)?\s?(?:role|status|level)?\s?(?:[:=]|is)\s?(?:an?\s|the"
        rf"\s)?{_ROLES}\b"
    ),
    (
        r"\b(?:has|have|had|granted|given|gets?|got|with|holds?)\s(?!no\s)(?:\w+\s){0,3}"
        r"(?:admin\w*|root|sudo|full|unrestricted|elevated|unlimited|superuser|privileged)\s(?:system\s|account\s)?"
        r"(?:access|rights?|privileges?|permissions?|control|authority|clearance)\b"
    ),
    (
        r"\b(?:pre-?approved|authori[sz]ed|permitted|allowed|cleared)\sto\s(?:bypass|skip|override|ignore|see"
        r"|access|use)\s(?:\w+\s){0,2}"
        r"(?:all|any|every|internal|confidential|rules?|checks?|limits?|verification)\b"
    ),
    (
        r"\b(?:admin\w*|root|full|elevated|unrestricted)\s(?:access|rights?|privileges?|permissions?)\s"
        r"(?:is|was|were|are|has been|have been)\s(?:granted|given|assigned)\sto\s(?:the|this)\s(?:user|client"
        r"|customer|caller)\b"
    ),
    r"\b(?:user|client|customer|caller)\shas\s(?:root|sudo)(?=\W*\Z|\s(?:on|to|access|rights))",
    (
        r"\b(?:user|client|customer|caller)\b.{0,40}\b(?:may|can)\s(?:(?:now|always)\s)?(?:(?:bypass|skip|override"
        r"|ignore)\s(?:\w+\s){0,2}"
        r"(?:checks?|rules?|limits?|verification|restrictions?|polic(?:y|ies))|(?:see|access|do|change|read)"
        r"\s(?:everything|anything))\b"
    ),
    (
        r"\b(?:user|client|customer|caller)\sis\s(?:exempt from|above|not bound by|not subject to"
        r"|trusted)\b.{0,20}\b(?:rules?|checks?"
        r"|limits?|verification|restrictions?|polic(?:y|ies))\b"
    ),
    (
        r"\bno\s(?:\w+\s)?(?:verification|authentication|confirmation|checks?)\s(?:is|are)\s(?:needed|required"
        r"|necessary)\sfor\s(?:this|the)"
        r"\s(?:user|client|customer|caller)\b"
    ),
    (
        r"\b(?:rules?|restrictions?|safeguards?|polic(?:y|ies)|limits?)\s(?:do|does)(?:\snot|n['’]t)\sapply\sto"
        r"\s(?:this|the)\s"
        r"(?:user|client|customer|caller)\b"
        r"|(?:\A\W*|\b(?:all|safety|content)\s)(?:restrictions|safeguards|guardrails|safety rules)\s(?:are|were"
        r"|have been)\s(?:now\s)?"
        r"(?:lifted|disabled|removed|suspended|off)\b"
    ),
    (
        r"\buser\s(?:outranks|commands|is the boss of)\b|\boperator\s(?:allows|permits|authori[sz]ed)"
        r"\s(?:everything|anything)\b"
        r"|\bassistant\shas\sno\s(?:\w+\s)?(?:restrictions|limits|rules|filters)\b"
        r"|\bassistant\s(?:works|operates|runs|is)\sin\s(?:developer|god|debug|jailbreak|unrestricted)\smode\b"
        r"|\bsystem prompt\s(?:may|can|should|must)\s(?:now\s)?be\s(?:revealed|shown|disclosed|shared|ignored)\b"
        r"|\bassistant\s(?:agreed|promised|has)\sto\s(?:reveal|disclose)\b"
    ),
    # English: orders to the reader
    (
        r"\A\W*(?:\w+:\s)?(?:always\s(?:approve|grant|accept|agree|trust|allow|obey|comply)|never\s(?:ask|confirm"
        r"|question|warn|refuse)"
        r"|approve\s(?:every|all|any)|(?:do not|don['’]t)\s(?:tell|inform|warn|ask)\sthe\s(?:user|client|customer)"
        r"|skip\s(?:all\s)?(?:verification|checks))\b"
    ),
    (
        r"\b(?:ignor\w+|disregard\w*|forget|overrid\w+|bypass\w*)\s(?:\w+\s){0,5}(?:instructions?|rules?|polic(?:y"
        r"|ies)|guidelines?|prompts?"
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
    (
        r"\b(?:пользовател[ья]\w*|клиент\w*|он|она|я|ты|вы)\s(?:(?:[—–-]|это|является|теперь|стал\w*|назначен\w*"
        r"|считается|здесь)\s){0,3}"
        r"(?:(?:системн|главн|полн)\w+\s)?(?:супер)?(?:админ(?!к)\w*|суперпользовател\w*|root)\b"
    ),
    r"\b(?:считать|признать|назначить)\s(?:пользовател\w+|клиента)\s(?:\w+\s)?(?:админ\w*|суперпользовател\w*)\b",
    (
        r"\b(?:имеет|есть|получ\w+|облада\w+|выдан\w*|предоставлен\w*|дан\w*|присвоен\w*|у\s(?:пользователя"
        r"|клиента))\s(?:\w+\s)?"
        r"(?:прав\w*|полномочи\w*|доступ\w*|рол\w*|статус\w*)\s(?:системн\w+\s)?(?:супер)?(?:админ\w*"
        r"|суперпользовател\w*|root)\b"
    ),
    r"\bроль\s(?:этого\s)?(?:пользователя|клиента)\s?(?:[:=—–-]|это)\s?(?:супер)?(?:админ\w*|root)\b",
    (
        r"\b(?:пользовател\w+|клиент\w*)\s(?:может|вправе|разрешено|можно)\s(?:обходить|обойти|игнорировать"
        r"|пропускать|видеть вс[её])\b"
        r"|(?:\A\W*|\bвсе\s)(?:ограничения|запреты)\s(?:были\s)?(?:сняты|отключены|отменены)\b"
        r"|\b(?:правила|ограничения)\sна\s(?:этого\s)?пользователя\sне\sраспростран"
        r"|\bпроверка\s(?:этому\s)?пользовател[юя]\sне\s(?:нужна|требуется)"
        r"|\bассистенту\s(?:разрешено|позволено|можно|запрещено)\s\w+|\bвключ[её]н\w*\sрежим\s(?:разработчика|бога"
        r"|без ограничений)"
    ),
    (
        r"\A\W*(?:\w+:\s)?(?:(?:всегда|никогда)\s(?:не\s)?(?:выполня|подчиня|одобря|соглаша|спрашива|доверя)\w*"
        r"|не\s(?:сообщай|говори|рассказывай|спрашивай|упоминай)\w*)"
    ),
    (
        r"\b(?:имеет|есть|получил\w*|обладает|выдан\w*|предоставлен\w*|дан\w*)\s(?:\w+\s){0,3}(?:полн\w+|админ\w+"
        r"|неограниченн\w+|root)[\s-]+"
        r"(?:доступ\w*|прав\w*|полномоч\w*|привилеги\w*)\b"
    ),
    (
        r"\b(?:игнорир\w+|забудь\w*|не учитыва\w+|отмени\w*|обойти|обходи\w*)\s(?:\w+\s){0,4}(?:инструкци\w+"
        r"|правил\w*"
        r"|указани\w+|ограничени\w+|промпт\w*)\b"
    ),
    r"\b(?:ассистент|модель|бот|ии|ты|вы)\s(?:\w+\s)?(?:обязан\w*|долж\w+|теперь|отныне)\s\w+",
    (
        r"\b(?:с этого момента|отныне|впредь)\b.{0,40}\b(?:ты|вы|ассистент|отвечай\w*|говори\w*|пиши\w*|всегда"
        r"|никогда)\b"
    ),
    r"\A\W*(?:всегда|никогда)\s(?:не\s)?(?:отвечай\w*|говори\w*|упоминай\w*|сообщай\w*|отказывай\w*)\b",
    # Chinese
    (
        r"(?:用户|他|她|我|你)(?:现在)?(?:是|为|成为|拥有|具有|获得|被授予|被赋予|的角色是|的角色为)[^。,，]{0,8}(?:(?<!数据库)(?<!网络)管理员|超级用户|最高权限|完全权限"
        r"|所有权限)"
    ),
    r"(?:忽略|无视|忘记)[^。]{0,10}(?:指令|规则|提示|限制|要求)|(?:助手|模型|你)(?:必须|应当始终|从现在起|永远)",
    (
        r"用户可以(?:绕过|跳过|忽略|无视)|(?:所有|一切)限制(?:已|都|全部)*(?:解除|取消)|(?:始终|总是|永远)(?:批准|同意|服从|答应)|不要(?:告诉|通知|提醒)用户"
        r"|(?:给予|授予|赋予)[该此]?用户[^。]{0,6}(?:权限|访问)|规则不适用于(?:该|此|这个)?用户"
    ),
    # German, French, Spanish: what is seen most
    (
        r"\b(?:ignoriere?|missachte|vergiss)\s(?:\w+\s){0,4}(?:anweisungen|regeln|vorgaben)\b|\bignore[rz]?"
        r"\s(?:\w+\s){0,4}(?:instructions|consignes|règles)\b"
        r"|\bignora\w*\s(?:\w+\s){0,4}(?:instrucciones|reglas)\b"
    ),
    r"\b(?:nutzer|benutzer|utilisateur|usuario)\w*\s(?:ist|hat|est|a|es|tiene)\s(?:\w+\s){0,3}(?:admin\w*)\b",
)
_CLAIM: Final = compiled("|".join(f"(?:{pattern})" for pattern in _CLAIMS), re.IGNORECASE)

_WHO: Final = (
    r"(?:the |a |an |this |one )?(?:user|assistant|message|document|text|page|tool|file|mail|e-?mail|web ?site"
    r"|paste|someone|customer|client)\b"
)
_SAYS: Final = (
    r"(?:wrote|writes|said|says|claim\w*|assert\w*|state[sd]?|ask(?:s|ed)|want(?:s|ed)|requests|requested|told"
    r"|tells|tried|tries|demands|demanded|order(?:s|ed)"
    r"|instruct(?:s|ed)|insist\w*|suggests|suggested|proposes|proposed|quot\w+|contain\w*|return(?:s|ed)|pretend\w*"
    r"|attempt\w*|reads)"
)
_ATTRIBUTED: Final = compiled(
    rf"\W*(?:{_WHO}(?:\s(?!must|should|shall|will|is|are|has|can|may|always|never)[^\s.:;]+){{0,4}}?\s{_SAYS}\b"
    rf"|according to\b|(?:it was|there was)\s(?:asked|claimed|said|a request|an attempt)\b"
    r"|(?:пользовател\w+|ассистент\w*|сообщени\w+|документ\w*|текст\w*|инструмент\w*|клиент\w*)\s(?:[^\s.:;]+"
    r"\s){0,3}?(?:написал\w*|пиш\w+|сказал\w*"
    r"|говор\w+|утвержда\w+|заявил\w*|заявля\w+|попросил\w*|просит|просил\w*|просят|хо[тч]\w+|требу\w+"
    r"|потребовал\w*|вернул\w*|гласит|содержит|предлож\w+)"
    r"|по словам\b|(?:用户|助手|文档|消息|工具)[^。:：]{0,6}(?:写道|说|称|声称|要求|请求|表示|返回|想)"
    r"|(?:der|die|das)\s(?:nutzer|benutzer|assistent|nachricht)\w*\s(?:schrieb|schreibt|sagte|behauptet\w*|bat"
    r"|bittet|will)"
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
