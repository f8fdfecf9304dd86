"""Secrets that are known by the word that names them: ``password=…``, "my PIN is …", in several languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from app.core.model.secret_shapes import FoundSecret, SecretFinder
from app.core.text.patterns import compiled
from app.core.text.plain_view import plain_view
from app.core.text.required_literals import normalized, pieces

_PASSWORDS: Final = (
    r"passwords?|passwd|passphrase|passcode|pwd|парол(?:ь|я|ем|и|ю|ями?)|(?:кодов|парольн)(?:ое|ая) (?:слово|фраза)"
    r"|密码|密碼|口令"
    r"|пассворд|(?<![^\W_])пасс?(?=[ \t]?[:=])|identified by|(?<![^\W_])(?:pass(?=[ \t]?[:=])|pw)(?![^\W_])"
    r"|パスワード|비밀번호|كلمة (?:المرور|السر)|contraseña|clave|mot de passe|passwort|kennwort|senha|hasło|şifre|סיסמה"
    r"|wachtwoord|lösenord|adgangskode|salasana|heslo|jelszó|лозинка|पासवर्ड|รหัสผ่าน|mật khẩu|kata sandi"
)
_SECRETS: Final = (
    r"api[ _-]?keys?|api[ _-]?secret|access[ _-]?key(?:[ _-]?id)?|secret[ _-]?(?:access[ _-]?)?key|client[ _-]?secret"
    r"|(?:auth|access|refresh|session|id|bot|api|private)[ _-]?token|private[ _-]?key|encryption[ _-]?key"
    r"|signing[ _-]?key|licen[sc]e[ _-]?key"
    r"|account ?key|shared ?access ?key|credentials?|secret|token|(?:api|апи)[ -]?ключ"
    r"|ключ (?:api|апи)|секрет(?:ный ключ)?|токен|密钥|令牌"
)
_PINS: Final = (
    r"pin(?:[ -]?code)?|пин(?:[ -]?код)?|(?P<short>cvv2?|cvc2?)|otp|one[ -]time (?:code|password)|verification code"
    r"|код (?:подтверждения|из смс)|验证码"
)
_OF: Final = r"[ ](?:to|(?P<whose>for|of|on|от|для|к|на|в))[ ][^\n:=—|]{1,40}?"
_NAMED: Final = compiled(
    rf"(?:(?P<password>{_PASSWORDS})|(?P<secret>{_SECRETS})|(?<![^\W_])(?P<pin>{_PINS}))"
    rf"(?P<of>{_OF})?"
    r"(?P<sign>\\?[\"'`*]{0,3}[ \t]{0,4}(?::=|=>|->|→|==?|%3[aAdD](?:%2[02])?|>(?=[^\s=>])|[:：—–]|[ ]-[ ]|['’]s\b"
    r"|\bis(?: now)?\b(?!\s\w+ to )|\bwas\b(?!\s\w+ to )|\bwill be\b|(?:\b(?:is|was|has been) )?\b(?:changed|set"
    r"|reset|updated) to\b|\b(?:lautet|ist|est|es|é|è|jest|är)\b(?=[ ])"
    r"|是|は|는|은|это|такой:?|будет|теперь|\|(?=[ \t])|(?(of)(?!)|\bto\b)"
    r"|(?:поменя|смени|измени|постави|установи)\w{1,4} на|改[成为]|设为"
    r"|(?(whose)(?<=[ \t])(?=\S{0,20}\d)|(?(of)(?!)|(?:(?<=[ \t])|(?=[«“„])))))"
    r"[ \t]{0,4}\\?[\"'`*«“„]{0,3}(?:(?<=\*\*)[ \t]{1,4})?)"
    r"(?P<value>(?(pin)\d(?:(?:[ -]\d){3,7}|\d\d[ -]\d{3})(?![\w-])|(?!))"
    r"|(?<=(?<!\\)\")(?:[^\"\\\n]|\\[^\n]){1,4000}+(?=\")|(?<=(?<!\\)')(?:[^'\\\n]|\\[^\n]){1,4000}+(?=')"
    r"|(?<=[«“„])[^»”“\n]{1,200}(?=[»”“])"
    r"|(?<=[\"'`])[^\"'`\n\\]{1,4000}(?=\\?[\"'`])|[^\s\"'`,;，。；<>(){}«»“”„]{1,200})",
    re.IGNORECASE,
)
_GOES_ON: Final = compiled(r"[^\s\"'`,;，。；<>(){}«»“”„]{0,20000}+")
_MAX_BARE_LENGTH: Final = 200
_NAMED_NEEDS: Final = pieces(rf"{_PASSWORDS}|{_SECRETS}|{_PINS}")
_PHRASE: Final = compiled(
    r"(?:seed phrase|recovery phrase|mnemonic|сид[- ]?фраза|助记词)\W{1,6}(?:is\s)?"
    r"(?P<value>(?:[a-z]{3,8}[ ,\n]{1,2}){11,23}[a-z]{3,8})",
    re.IGNORECASE,
)
_PHRASE_NEEDS: Final = pieces(_PHRASE.pattern)
_PASSPHRASE: Final = compiled(
    r"(?:pass[ -]?phrase|(?:парольная|кодовая) фраза)(?:[ \t]{0,4}[:=][ \t]{0,4}|[ \t](?:is|это|[—-])[ \t])[\"'`«]?"
    r"(?P<value>[^\W\d_]{2,20}(?:[ -][^\W\d_]{2,20}){2,11}+)[\"'`».]?(?=[ \t]{0,4}(?:[\r\n]|\Z))",
    re.IGNORECASE,
)
_PASSPHRASE_NEEDS: Final = pieces(_PASSPHRASE.pattern)
_GRAMMAR: Final = compiled(
    r"\b(?:the|an?|is|are|be|to|of|in|on|at|for|by|and|or|not|no|with|from|must|should|can|will|has|have|had|it|its|this"
    r"|that|every|any|all|than|before|after|when|required|needed|не|и|в|на|из|для|с|по|от|или|это|что|как|должн\w{1,2}"
    r"|нужн\w{1,2})\b",
    re.IGNORECASE,
)
"""Words that a sentence about a passphrase has. A passphrase itself, made of randomly drawn words, hardly has any."""
_NAME: Final = compiled(
    rf"(?P<password>{_PASSWORDS})|(?P<secret>{_SECRETS})|(?<![^\W_])(?P<pin>{_PINS})", re.IGNORECASE
)
_ASKED: Final = 160  # the last characters of a line, searched for the name of a secret that the next line gives
_ASKING: Final = compiled(
    r"(?:[ ](?:for|to|of|on|от|для|к|на|в)[ ][^\n:=—|?]{1,40}+)?[\"'`*]{0,3}"
    r"[ \t]{0,4}(?:is:?|это:?|:=|[:=?-]|—)?[*]{0,2}[ \t]{0,4}\Z",
    re.IGNORECASE,
)
_ALONE: Final = compiled(
    r"\n(?:[ \t]{0,20}\r?\n){0,3}(?:`{3}\w{0,12}\r?\n)?"
    r"[ \t]{0,40}(?:(?:[*>•-]|it['’]?s|it is|это|вот)[ \t])?[\"'`]?"
    r"(?P<value>[^\s\"'`]{3,200}(?:[ -]\d{1,3}){0,3})(?=[\"'`]?[.,]?[ \t]{0,4}(?:[\r\n]|\Z))",
    re.IGNORECASE,
)
_BLOCK: Final = compiled(r":[ \t]{1,4}[|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,40}(?P<value>[^\s][^\n]{3,4000})")
_BEFORE_ANSWER: Final = 160
_ANSWER: Final = 400
"""How many characters at the beginning of a message are searched for a secret that the message before asks for."""
_MARK: Final = "[REDACTED:"
_PLACEHOLDER: Final = compiled(
    r"\[REDACTED|[\[$%<{*.•…_x?-]{2}|[$%<{*]|(?:none|null|nil|true|false|undefined|str|string|text|bytes|bool|int"
    r"|secretstr"
    r"|optional|required|changeme|empty|hidden|secret|password|your[-_ ]?\w+|getenv"
    r"|input|example)(?![^\W_])|(?:os|process|env|settings|config|self|req(?:uest)?|user)[.\[(]"
    r"|[A-Za-z_][\w.]{0,80}[(\[]"
    r"|[A-Za-z_][\w.]{0,80}?[_.](?:password|passwd|pwd|secret|token|key)s?(?![\w.])",
    re.IGNORECASE,
)
_MIN_PASSWORD_LENGTH: Final = 4
_MIN_SECRET_LENGTH: Final = 12
_TRAILING: Final = ".,!?:…"
_QUOTES: Final = ('"', "'", "`", "«", "“", "„")
_QUOTED: Final = "\"'`*\\«“„"


def _named_secrets(text: str) -> Iterator[FoundSecret]:
    if not _has_needed_piece(text, _NAMED_NEEDS):
        return
    place = 0
    while found := _NAMED.search(text, place):
        quoted = found["sign"].endswith(_QUOTES)
        value = found["value"] if quoted else found["value"].rstrip(_TRAILING)
        kind = _kind(found)
        start, place = found.span("value")
        if _IS_SECRET[kind](found, value):
            if len(found["value"]) == _MAX_BARE_LENGTH:
                value += _rest_of_value(text, place)
            place = start + len(value)
            yield start, place, kind
        else:
            place = start  # the value may itself name a secret: "the password is password=…"


def _kind(found: re.Match[str]) -> str:
    return "password" if found["password"] else "secret" if found["secret"] else "pin"


def _rest_of_value(text: str, place: int) -> str:
    found = _GOES_ON.match(text, place)
    return found.group().rstrip(_TRAILING) if found else ""


def _has_needed_piece(text: str, needed: frozenset[str] | None) -> bool:
    if needed is None:
        return True
    folded = normalized(text)
    return any(piece in folded for piece in needed)


def _next_line_secrets(text: str) -> Iterator[FoundSecret]:
    if "\n" not in text or not _has_needed_piece(text, _NAMED_NEEDS):
        return
    for found in _ALONE.finditer(text):
        value = found["value"].rstrip(_TRAILING)
        kinds = _kinds_named_at_line_end(text, found.start()) if any(sign.isdigit() for sign in value) else ()
        kind = next((kind for kind in kinds if is_secret_by_itself(kind, value)), None)
        if kind:
            start = found.start("value")
            yield start, start + len(value), kind


def _yaml_block_secrets(text: str) -> Iterator[FoundSecret]:
    for found in _BLOCK.finditer(text):
        kinds = [] if _PLACEHOLDER.match(found["value"]) else _kinds_named_at_line_end(text, found.start())
        if kinds and kinds[-1] != "pin":
            yield *found.span("value"), kinds[-1]


def _kinds_named_at_line_end(text: str, end: int) -> list[str]:
    line = text[max(0, end - _ASKED) : end].rpartition("\n")[2].rstrip("\r")
    return [_kind(name) for name in _NAME.finditer(line) if _ASKING.match(line, name.end())]


def is_secret_by_itself(kind: str, value: str) -> bool:
    """Whether a value looks like a secret of this kind and like nothing else, even if no word beside it says so."""
    if kind == "pin":
        digits = value.replace(" ", "").replace("-", "")
        return digits.isdigit() and 4 <= len(digits) <= 8  # noqa: PLR2004 - PINs have up to eight digits
    if _PLACEHOLDER.match(value) or _PLACE.match(value) or _MARK in value:
        return False
    return _is_bare_password(value) and (kind == "password" or (len(value) >= _MIN_SECRET_LENGTH and value.isascii()))


def secret_in_answer(before: str, after: str) -> tuple[str, str] | None:
    """The secret in a message that answers the message before ("your password?" – "hunter22"): its value and kind."""
    named = before.rstrip()[-_BEFORE_ANSWER:] + "\n"
    both = named + after[:_ANSWER]
    view = plain_view(both)
    for start, end, kind in _next_line_secrets(view.text):
        begin = view.original(start)
        if begin >= len(named):
            return both[begin : view.original(end)], kind
    return None


def _passphrases(text: str) -> Iterator[FoundSecret]:
    if not _has_needed_piece(text, _PASSPHRASE_NEEDS):
        return
    for found in _PASSPHRASE.finditer(text):
        if not _GRAMMAR.search(found["value"]):
            yield *found.span("value"), "password"


def _seed_phrases(text: str) -> Iterator[FoundSecret]:
    if not _has_needed_piece(text, _PHRASE_NEEDS):
        return
    for found in _PHRASE.finditer(text):
        yield *found.span("value"), "seed_phrase"


_ADJECTIVES: Final = compiled(
    r"(?:wrong|right|gone|weak|strong|good|bad|correct|incorrect|invalid|valid|expired?|expiring|required|lost"
    r"|missing|safe|secure|unknown"
    r"|fine|here|there|needed|old|new|short|long|okay|reset|changed|stored|leaked|compromised|hashed|encrypted"
    r"|forgotten"
    r"|broken|blank|optional|mandatory|set|unset|same|different|unchanged|locked|saved|protected|visible|private"
    r"|public"
    r"|working|rejected|accepted|below|above|case|not|no|n/?a|\w+(?:ed|ing|able|ible|ful|ly))\Z"
    r"|(?:не\w*|нет|есть|нужен|любой|прежний|старый|новый|другой|простой|сложный|слабый|скрыт|пуст\w*|верн\w*|тот|там"
    r"|\w+(?:ен|ён|ан|ят|ыт|ел|ал|ил|ала|ила|ли|ный|ной|тся|лся|ется))\Z",
    re.IGNORECASE,
)
"""Words that describe a password. Any other word that stands alone after "my password is" is taken for the password."""
_OWNED: Final = compiled(r"(?:my|our|his|her|their|мой|наш|его|её|ее)\s(?:\w{1,20}\s){0,2}\Z", re.IGNORECASE)
_OWNER: Final = 60  # characters before a name in which its owner may stand
_ALGORITHMS: Final = compiled(
    r"(?:sha|md|argon|bcrypt|scrypt|pbkdf|base|utf|oauth|\d?fa\b|2fa|mfa|v)-?\d*+(?:[a-z]{1,4}\d*+)?\Z", re.IGNORECASE
)
_MIN_BARE_LENGTH: Final = 6
_MEASURE: Final = compiled(r"\d{1,4}(?:-[^\W\d_]{4,}|[\u3040-\u9fff\uac00-\ud7a3]\w*)\Z")
"""``8-stellig``, ``12-значный``, ``8文字以上``: descriptions of a password's length."""
_PLACE: Final = compiled(
    r"[a-z][a-z0-9+]{1,15}://|arn:|(?:\.{0,2}|~)/[\w.-]{1,60}/|projects/"
    r"|[\w./-]{1,200}\.(?:json|ya?ml|pem|key|txt|env|py)\Z",
    re.IGNORECASE,
)
"""The place where a secret is kept, such as a path or an address: not the secret itself."""


def _is_password(found: re.Match[str], value: str) -> bool:
    """Whether a value is a password, since prose would not have it there.

    It is assigned, quoted, alone on its line, or has a digit, a sign or an unusual capital in it.
    """
    if len(value) < _MIN_PASSWORD_LENGTH or _PLACEHOLDER.match(value) or _is_call(found, value):
        return False
    sign = found["sign"].strip()
    if sign.strip(_QUOTED) in {"", "to", "|"} or (found["of"] and not sign):  # nothing says that this is the value
        return _is_bare_password(value)
    if (sign[-1:].isalpha() and _MEASURE.match(value)) or _PLACE.match(value):
        return False
    odd = any(not letter.isalpha() for letter in value) or (value != value.lower() and value != value.capitalize())
    hyphened = value.replace("-", "").isalpha() and value == value.lower()
    if odd and not (sign[-1:].isalpha() and hyphened):
        return True
    return not "\u3040" <= value[0] <= "\u9fff" and not found["of"] and _is_word_password(found, sign, value)


def _is_call(found: re.Match[str], value: str) -> bool:
    # Code that computes a password: ``password = encoder.encode(...)``.
    return found.string[found.end("value") : found.end("value") + 1] == "(" and value.replace(".", "").isidentifier()


def _is_word_password(found: re.Match[str], sign: str, value: str) -> bool:
    """Whether a plain word is a password: it is assigned, or stands alone and does not describe a password."""
    says_how = _ADJECTIVES.match(value) is not None
    if "=" in sign or sign.endswith((*_QUOTES, ">")):
        return value.isascii() or not says_how
    rest = found.string[found.end("value") : found.end("value") + 2]
    alone = rest[:1] in {"", "\n", "\r", '"', "'", "`", "\\", ";", "&"} or rest in {".\n", "."}
    if not alone:
        return False
    if sign[:1] in ":：—–":
        return value.isascii() or not says_how
    owned = _OWNED.search(found.string, max(0, found.start() - _OWNER), found.start())
    return owned is not None and sign[-1:].isalpha() and not says_how


def _is_bare_password(value: str) -> bool:
    mixed = any(letter.isalpha() for letter in value) and any(letter.isdigit() for letter in value)
    is_said_of_it = _ALGORITHMS.match(value) or _MEASURE.match(value)
    return mixed and len(value) >= _MIN_BARE_LENGTH and value[0] not in "-/" and not is_said_of_it


def _is_secret(found: re.Match[str], value: str) -> bool:
    if _PLACE.match(value) or (found["of"] and not found["sign"].strip()):
        return False
    if len(value) < _MIN_SECRET_LENGTH or _PLACEHOLDER.match(value) or not value.isascii() or _is_call(found, value):
        return False
    return any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)


def _is_pin(found: re.Match[str], value: str) -> bool:
    if " " in value or "-" in value:
        value = value.replace(" ", "").replace("-", "")
        if not found["sign"].strip():
            return False
    elif found["of"] and not found["sign"].strip():
        return False
    is_named = found["sign"].strip(" \t|`")
    least = 3 if found["short"] or is_named else 4  # "pin 13" is a pin of a chip
    return value.isdigit() and least <= len(value) <= 8  # noqa: PLR2004 - PINs have up to eight digits


_IS_SECRET: Final[Mapping[str, Callable[[re.Match[str], str], bool]]] = {
    "password": _is_password,
    "secret": _is_secret,
    "pin": _is_pin,
}


_SECRET_KEY: Final = compiled(rf"(?:.{{0,60}}[^a-zа-я])?(?:{_PASSWORDS}|{_SECRETS}|{_PINS})", re.IGNORECASE)


def names_secret(key: str) -> bool:
    """Whether a key of an object names a secret."""
    return _SECRET_KEY.fullmatch(key) is not None


def kind_named(name: str) -> str | None:
    """The kind of secret that the name of a column or key names; ``None`` if it names none."""
    kinds = [_kind(found) for found in _NAME.finditer(name) if found.end() == len(name)] if names_secret(name) else []
    return kinds[0] if kinds else None


def may_be_named(text: str) -> bool:
    """Whether any secret can be named in a text: a fast test that rules out most texts that name none."""
    return _has_needed_piece(text, _NAMED_NEEDS)


NAME_FINDERS: Final[tuple[SecretFinder, ...]] = (
    _named_secrets,
    _yaml_block_secrets,
    _next_line_secrets,
    _passphrases,
    _seed_phrases,
)
"""The finders of secrets that a word names, in the order in which they are tried."""
