"""Known shapes of secrets become ``[REDACTED:kind]`` in everything that is derived from a message, never in it.

Laws: redacting twice is redacting once; every pattern runs in linear time; nothing here raises. A shape is known by a
prefix that a provider gives its keys, by a check sum, or by the word that names the value (``password=…``): long words,
UUIDs, hashes, order and phone numbers are no secrets.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from app.core.model.conversation import Message
from app.core.text.factors import fold, pieces
from app.core.text.parts import Part, own_content
from app.core.text.patterns import compiled

_PASSES: Final = 4  # what is redacted can uncover a neighbour; more than this no honest text needs
_DEEPEST: Final = 64  # levels of a tool's arguments that are looked into
_KEY_BLOCK: Final = 20_000  # characters: the longest private key block
_DATA: Final = frozenset({"data"})
"""Keys of a part that hold the media itself: never shown, never searched."""

Finder = Callable[[str], Iterator[tuple[int, int, str]]]
"""Text to (start, end, kind), in order and apart from each other."""


def redact(text: str) -> str:
    """The text with every known secret replaced by ``[REDACTED:kind]``."""
    for _ in range(_PASSES):
        cleaned = text
        for find in _FINDERS:
            cleaned = _replaced(cleaned, find(cleaned))
        if cleaned == text:
            break
        text = cleaned
    return text


def redact_message(message: Message) -> Message:
    """The message as derivatives may see it: content and parts redacted, everything else (weights too) as it was.

    A secret that is split over neighbouring text parts is found as well.
    """
    content = redact(message.content)
    parts = tuple(_part(part) for part in _joined(message.parts))
    if content == message.content and parts == message.parts:
        return message
    repeats = content and not own_content(message.role, message.content, message.parts)
    if repeats and own_content(message.role, content, parts):
        content = ""  # a secret in a text may be told otherwise than in a value: both would be shown
    return replace(message, content=content, parts=parts)


def redact_value(value: Any) -> Any:
    """A JSON value with every string in it redacted; what stands under a key such as ``password`` goes whole."""
    return _value(value, 0)


def _replaced(text: str, found: Iterator[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, kind in found:
        pieces += (text[done:start], f"[REDACTED:{kind}]")
        done = end
    return "".join([*pieces, text[done:]]) if pieces else text


# --- keys that providers mark with a prefix -------------------------------------------------------------------------

_BEFORE: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # also behind the escaped line break of a JSON string
_KEYS: Final[Mapping[str, str]] = {
    "aws_key": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "google_key": r"AIza[\w-]{35,60}+|ya29\.[\w-]{20,2000}+|GOCSPX-[\w-]{20,60}+|1//0[\w-]{30,300}+",
    "azure_secret": r"[\w~.-]{3}[78]Q~[\w~.-]{31,40}+",
    "github_token": r"gh[pousr]_[A-Za-z0-9]{30,255}+|github_pat_\w{22,255}+",
    "gitlab_token": r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[\w.-]{16,255}+",
    "slack_token": (
        r"xox[abeoprs](?:\.xox[bp])?-[\w-]{10,255}+|xapp-[\w-]{20,255}+"
        r"|hooks\.slack\.com/services/[\w/]{20,120}+"
    ),
    "stripe_key": r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,255}+|whsec_[A-Za-z0-9+/=]{16,255}+",
    "anthropic_key": r"sk-ant-[\w-]{16,255}+",
    "openai_key": r"sk-(?=[\w-]{0,254}\d)(?:[a-z]{3,12}-)?[\w-]{20,255}+",
    "huggingface_token": r"hf_[A-Za-z0-9]{30,64}+",
    "package_token": r"npm_[A-Za-z0-9]{36,64}+|pypi-[\w-]{50,300}+|dckr_pat_[\w-]{20,64}+",
    "sendgrid_key": r"SG\.[\w-]{16,32}\.[\w-]{16,64}+",
    "twilio_key": r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
    "telegram_token": r"\d{8,10}:AA[\w-]{32,34}(?![\w-])",
    "discord_token": r"[MNO][A-Za-z\d]{23,27}\.[\w-]{6}\.[\w-]{27,50}+",
    "cloud_token": (
        r"do[por]_v1_[a-f0-9]{64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|lin_api_[A-Za-z0-9]{40}|hvs\.[\w-]{24,255}+"
        r"|dapi[a-f0-9]{32}(?![A-Za-z0-9])|sq0(?:atp|csp)-[\w-]{22,64}+|AGE-SECRET-KEY-1[0-9A-Z]{58}"
        r"|glsa_\w{32,64}+|sntry[su]_[\w+/=-]{30,300}+|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|xai-[A-Za-z0-9]{40,120}+"
        r"|gsk_[A-Za-z0-9]{40,80}+|r8_[A-Za-z0-9]{36,40}+|tvly-[\w-]{20,64}+|AccountKey=[A-Za-z0-9+/]{40,100}={0,2}"
    ),
    "vendor_key": (
        r"key-[0-9a-z]{32}(?![0-9a-z])|xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}|EAA[A-Za-z0-9]{60,400}+"
        r"|AT(?:ATT|CTT|BB)[\w=.-]{24,300}+|nvapi-[\w-]{40,100}+|pplx-[A-Za-z0-9]{40,64}+|figd_[\w-]{30,64}+"
        r"|(?:ntn|secret)_[A-Za-z0-9]{40,64}+|dp\.(?:pt|st|ct|sa)\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{40,64}+"
        r"|lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}|NRAK-[A-Z0-9]{27}|sbp_[a-f0-9]{40}|tskey-[a-z]{3,8}-[\w-]{16,80}+"
        r"|pscale_(?:tkn|pw)_[\w.-]{30,64}+|rubygems_[a-f0-9]{48}|phx_[A-Za-z0-9]{40,64}+|LTAI[A-Za-z0-9]{16,24}+"
        r"|AQVN[\w-]{35,60}+|y[0-3]_[\w-]{50,80}+|t1\.[\w-]{40,400}={0,2}\.[\w-]{80,100}={0,2}|vk1\.a\.[\w-]{60,300}+"
        r"|v1\.0-[a-f0-9]{24}-[a-f0-9]{100,200}|discord(?:app)?\.com/api/webhooks/\d{15,22}/[\w-]{50,100}+"
    ),
    "throughline_key": r"tl_[\w-]{43}(?![\w-])",
    "jwt": r"eyJ[\w-]{8,4000}+\.(?:[\w-]{0,4000}+\.){1,3}[\w-]{8,4000}+",
}
_KEY: Final = compiled(f"{_BEFORE}(?:{'|'.join(f'(?P<{kind}>{shape})' for kind, shape in _KEYS.items())})", re.ASCII)
_KEY_HINT: Final = compiled(
    r"A[KSBC][ICA]A|AIza|ya29|GOCSPX|1//0|Q~|gh[pousr]_|github_|gl[a-z]{2,5}-|xox|xapp-|hooks\.|[sr]k[-_]|whsec|hf_"
    r"|npm_"
    r"|pypi-|dckr|SG\.|SK[0-9a-f]|:AA|[MNO][A-Za-z\d]{23}|do[por]_v|shp|lin_api|hvs\.|dapi|sq0|AGE-|glsa|sntry|PMAK"
    r"|xai-|gsk_|r8_|tvly|AccountKey|eyJ|tl_|key-|xkeysib|EAA|AT(?:ATT|CTT|BB)|nvapi|pplx-|figd_|ntn_|secret_|dp\."
    r"|lsv2_"
    r"|NRAK|sbp_|tskey|pscale|rubygems|phx_|LTAI|AQVN|y[0-3]_|t1\.|vk1\.|v1\.0|webhooks/"
)


def _keys(text: str) -> Iterator[tuple[int, int, str]]:
    if _KEY_HINT.search(text):
        for found in _KEY.finditer(text):
            yield found.start(), found.end(), found.lastgroup or "secret"


# --- blocks --------------------------------------------------------------------------------------------------------

_BEGIN: Final = compiled(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d{1,4}")
_END: Final = compiled(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES: Final = compiled(
    r"(?:(?:\s|\\[nr]){0,8}[A-Za-z0-9+/=]{24,200}){0,400}+(?:(?:\s|\\[nr]){0,8}[A-Za-z0-9+/]{1,80}={1,2})?"
)


def _private_keys(text: str) -> Iterator[tuple[int, int, str]]:
    """From BEGIN to END; without an END, as far as the lines look like a key."""
    if "PRIVATE KEY" not in text and "Private-Lines" not in text:
        return
    ends = [found.end() for found in _END.finditer(text)]
    done = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        place = bisect_left(ends, begin.end())
        if place < len(ends) and ends[place] - begin.start() <= _KEY_BLOCK:
            done = ends[place]
        else:
            lines = _KEY_LINES.match(text, begin.end())
            done = lines.end() if lines else begin.end()
        yield begin.start(), done, "private_key"


# --- what stands in a URL or a header ------------------------------------------------------------------------------

_IN_URL: Final = compiled(r"(?<=://)[^\s:/@?#\"<>]{0,100}+:(?P<value>[^\s/?#\"<>]{1,200})@(?=[\w\[])")
_HEADER: Final = compiled(
    r"\b(?:bearer\s{1,4}(?P<bearer>(?=[\w.~+/-]{0,254}\d)[\w.~+/-]{16,4000}+=*)"
    r"|authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|token|apikey|digest)"
    r"\s{1,4}(?P<authorization>[\w.~+/-]{8,4000}+=*))",
    re.IGNORECASE | re.ASCII,
)
_SIGNED: Final = compiled(
    r"[?&](?:sig|signature|x-amz-signature|x-goog-signature|access_token|api_?key"
    r"|auth_?token)=(?P<value>[\w%+/.~-]{12,2000}+)",
    re.IGNORECASE | re.ASCII,
)


_COMMAND: Final = compiled(
    r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:(?P<curl>[^\s\"']{1,200})"
    r"|\b(?:mysql(?:dump|admin)?|mariadb(?:-dump)?)\b[^\n]{0,200}?\s-p[\"']?(?P<sql>[^\s\"']{4,200})"
    r"|\bredis-cli\b[^\n]{0,200}?\s-a\s[\"']?(?P<redis>[^\s\"']{4,200})"
    r"|\bsshpass\s{1,4}-p\s?[\"']?(?P<ssh>[^\s\"']{1,200})"
)
_COMMANDS: Final = ("curl", "mysql", "mariadb", "redis-cli", "sshpass")
_COOKIE: Final = compiled(
    r"\b(?:session(?:[ _-]?id)?|sess(?:id)?|sid|phpsessid|jsessionid|asp\.net_sessionid|connect\.sid"
    r"|auth(?:_session)?"
    r"|remember_\w{1,40})=(?P<value>(?=[\w%+/.~-]{0,254}\d)[\w%+/.~-]{16,2000}+)",
    re.IGNORECASE | re.ASCII,
)


def _in_commands(text: str) -> Iterator[tuple[int, int, str]]:
    if any(command in text for command in _COMMANDS):
        for found in _COMMAND.finditer(text):
            yield *found.span(found.lastgroup or 0), "password"


def _in_cookies(text: str) -> Iterator[tuple[int, int, str]]:
    if "=" in text:
        for found in _COOKIE.finditer(text):
            yield *found.span("value"), "session"


def _in_urls(text: str) -> Iterator[tuple[int, int, str]]:
    if "://" in text:
        for found in _IN_URL.finditer(text):
            yield *found.span("value"), "password"


def _signatures(text: str) -> Iterator[tuple[int, int, str]]:
    if "=" in text:
        for found in _SIGNED.finditer(text):
            yield *found.span("value"), "url_token"


def _headers(text: str) -> Iterator[tuple[int, int, str]]:
    for found in _HEADER.finditer(text):
        kind = found.lastgroup or "bearer"
        yield *found.span(kind), kind


# --- values that are named -----------------------------------------------------------------------------------------

_PASSWORDS: Final = (
    r"passwords?|passwd|passphrase|passcode|pwd|парол(?:ь|я|ем|и|ю)|кодов(?:ое|ая) (?:слово|фраза)|密码|密碼|口令"
    r"|пассворд|(?<![^\W_])(?:pass(?=[ \t]?[:=])|pw)(?![^\W_])"
    r"|パスワード|비밀번호|كلمة (?:المرور|السر)|contraseña|clave|mot de passe|passwort|kennwort|senha|hasło|şifre|סיסמה"
)
_SECRETS: Final = (
    r"api[ _-]?keys?|api[ _-]?secret|access[ _-]?key(?:[ _-]?id)?|secret[ _-]?(?:access[ _-]?)?key|client[ _-]?secret"
    r"|(?:auth|access|refresh|session|id|bot|api|private)[ _-]?token|private[ _-]?key|encryption[ _-]?key"
    r"|signing[ _-]?key|account ?key|shared ?access ?key|credentials?|secret|token|(?:api|апи)[ -]?ключ"
    r"|ключ (?:api|апи)|секрет(?:ный ключ)?|токен|密钥|令牌"
)
_PINS: Final = (
    r"pin(?:[ -]?code)?|пин(?:[ -]?код)?|(?P<short>cvv2?|cvc2?)|otp|one[ -]time (?:code|password)|verification code"
    r"|код (?:подтверждения|из смс)|验证码"
)
_NAMED: Final = compiled(
    rf"(?:(?P<password>{_PASSWORDS})|(?P<secret>{_SECRETS})|(?<![^\W_])(?P<pin>{_PINS}))"
    r"(?P<of>[ ](?:for|to|of|on|от|для|к|на|в)[ ][^\n:=—]{1,40}?)?"
    r"(?P<sign>\\?[\"'`*]{0,3}[ \t]{0,4}(?::=|=>|->|→|==?|>(?=[^\s=>])|[:：—–]|[ ]-[ ]|['’]s\b"
    r"|\bis(?: now)?\b(?!\s\w+ to )|\bwas\b(?!\s\w+ to )|\bwill be\b|(?:\b(?:is|was|has been) )?\b(?:changed|set"
    r"|reset|updated) to\b"
    r"|是|は|это|такой:?|будет|теперь|(?(of)(?!)|\bto\b)"
    r"|(?:поменя|смени|измени|постави|установи)\w{1,4} на|改[成为]|设为|(?(of)(?!)|(?<=[ \t])))"
    r"[ \t]{0,4}\\?[\"'`*]{0,3})"
    r"(?P<value>(?<=[\"'`])[^\"'`\n\\]{1,200}(?=\\?[\"'`])|[^\s\"'`,;，。；<>(){}]{1,200})",
    re.IGNORECASE,
)
_NAMED_NEEDS: Final = pieces(rf"{_PASSWORDS}|{_SECRETS}|{_PINS}")
_PHRASE: Final = compiled(
    r"(?:seed phrase|recovery phrase|mnemonic|сид[- ]?фраза|助记词)\W{1,6}(?:is\s)?"
    r"(?P<value>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
    re.IGNORECASE,
)
_PHRASE_NEEDS: Final = pieces(_PHRASE.pattern)
_PLACEHOLDER: Final = compiled(
    r"\[REDACTED|[\[$%<{*.•…_x?-]{2}|[$%<{*]|(?:none|null|nil|true|false|undefined|str|string|text|bytes|bool|int"
    r"|secretstr"
    r"|optional|required|changeme|empty|hidden|secret|password|your[-_ ]?\w+|getenv"
    r"|input|example)(?![^\W_])|(?:os|process|env|settings|config|self|req(?:uest)?|user)[.\[(]"
    r"|[A-Za-z_][\w.]{0,80}[(\[]"
    r"|[A-Za-z_][\w.]{0,80}?[_.](?:password|passwd|pwd|secret|token|key)s?(?![\w.])",
    re.IGNORECASE,
)
_LEAST_PASSWORD: Final = 4
_LEAST_SECRET: Final = 12
_TRAILING: Final = ".,!?:…"


def _named(text: str) -> Iterator[tuple[int, int, str]]:
    if not _may_fit(text, _NAMED_NEEDS):
        return
    place = 0
    while found := _NAMED.search(text, place):
        quoted = found["sign"].endswith(('"', "'", "`"))
        value = found["value"] if quoted else found["value"].rstrip(_TRAILING)
        kind = "password" if found["password"] else "secret" if found["secret"] else "pin"
        start, place = found.span("value")
        if _IS_SECRET[kind](found, value):
            yield start, start + len(value), kind
        else:
            place = start  # it may name a secret itself: "the password is password=…"


def _may_fit(text: str, needed: frozenset[str] | None) -> bool:
    """Whether a text has any of the pieces without which a pattern does not fit."""
    if needed is None:
        return True
    folded = fold(text)
    return any(piece in folded for piece in needed)


def _phrases(text: str) -> Iterator[tuple[int, int, str]]:
    if not _may_fit(text, _PHRASE_NEEDS):
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
"""What is said of a password; everything else that stands alone after "my password is" is one."""
_OWNED: Final = compiled(r"(?:my|our|his|her|their|мой|наш|его|её|ее)\s(?:\w{1,20}\s){0,2}\Z", re.IGNORECASE)
_OWNER: Final = 60  # characters before a name in which its owner may stand
_ALGORITHMS: Final = compiled(
    r"(?:sha|md|argon|bcrypt|scrypt|pbkdf|base|utf|oauth|\d?fa\b|2fa|mfa|v)-?\d*+(?:[a-z]{1,4}\d*+)?\Z", re.IGNORECASE
)
_LEAST_BARE: Final = 6


def _is_password(found: re.Match[str], value: str) -> bool:
    """A value that no prose would put there: assigned, quoted, alone on its line, or with a digit or sign in it."""
    if len(value) < _LEAST_PASSWORD or _PLACEHOLDER.match(value) or _is_called(found, value):
        return False
    sign = found["sign"].strip()
    if sign.strip("\"'`*\\") in {"", "to"}:  # no word names it as the value
        return _is_bare_password(value)
    odd = any(not letter.isalpha() for letter in value) or (value != value.lower() and value != value.capitalize())
    hyphened = value.replace("-", "").isalpha() and value == value.lower()
    if odd and not (sign[-1:].isalpha() and hyphened):
        return True
    return not "\u3040" <= value[0] <= "\u9fff" and not found["of"] and _is_word_password(found, sign, value)


def _is_called(found: re.Match[str], value: str) -> bool:
    """``password = encoder.encode(…)``: code that makes one."""
    return found.string[found.end("value") : found.end("value") + 1] == "(" and value.replace(".", "").isidentifier()


def _is_word_password(found: re.Match[str], sign: str, value: str) -> bool:
    """A plain word: one that is assigned, or that stands alone and is not what one says of a password."""
    says_how = _ADJECTIVES.match(value) is not None
    if "=" in sign or sign.endswith(('"', "'", "`", ">")):
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
    """As in ``password hunter2``: letters and digits together, and no name of an algorithm."""
    mixed = any(letter.isalpha() for letter in value) and any(letter.isdigit() for letter in value)
    return mixed and len(value) >= _LEAST_BARE and value[0] not in "-/" and not _ALGORITHMS.match(value)


def _is_secret(found: re.Match[str], value: str) -> bool:
    """Long, with digits, and no order of words: keys look like nothing else."""
    if len(value) < _LEAST_SECRET or _PLACEHOLDER.match(value) or not value.isascii() or _is_called(found, value):
        return False
    return any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)


def _is_pin(found: re.Match[str], value: str) -> bool:
    least = 3 if found["short"] or found["sign"].strip() else 4  # "pin 13" is one of a chip
    return value.isdigit() and least <= len(value) <= 8  # noqa: PLR2004 - PINs have up to eight digits


_IS_SECRET: Final[Mapping[str, Callable[[re.Match[str], str], bool]]] = {
    "password": _is_password,
    "secret": _is_secret,
    "pin": _is_pin,
}


# --- payment cards -------------------------------------------------------------------------------------------------

_CARD: Final = compiled(r"(?<![\w.#№+-])(?:(?:\d[ -]{0,2}){12,18}\d|\d{4}(?:\.\d{4}){3})(?![\w-]|\.\d)", re.ASCII)
_BETWEEN_DIGITS: Final = str.maketrans("", "", " .-")
_ISSUERS: Final = compiled(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|220[0-4]\d{12,15}"
    r"|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|6(?:011|4[4-9]\d|5\d\d)\d{12}|62\d{14,17}"
)


def _cards(text: str) -> Iterator[tuple[int, int, str]]:
    for found in _CARD.finditer(text):
        digits = found.group().translate(_BETWEEN_DIGITS)
        if _ISSUERS.fullmatch(digits) and _passes_luhn(digits):
            yield *found.span(), "card"


def _passes_luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * 2 if place % 2 else int(digit)
        total += doubled - 9 if doubled > 9 else doubled  # noqa: PLR2004 - the sum of its two digits
    return total % 10 == 0


_FINDERS: Final[tuple[Finder, ...]] = (
    _private_keys,
    _keys,
    _in_urls,
    _in_commands,
    _signatures,
    _in_cookies,
    _headers,
    _named,
    _phrases,
    _cards,
)


# --- parts of messages ---------------------------------------------------------------------------------------------

_SECRET_KEY: Final = compiled(rf"(?:.{{0,60}}[^a-zа-я])?(?:{_PASSWORDS}|{_SECRETS}|{_PINS})", re.IGNORECASE)


def _part(part: Part) -> Part:
    redacted: Part = {key: value if key in _DATA else _value(value, 0) for key, value in part.items()}
    return part if redacted == part else redacted


def _value(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if value.startswith("data:") else redact(value)
    if isinstance(value, Mapping):
        return _mapping(value, depth)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_value(item, depth + 1) for item in value] if depth < _DEEPEST else []
    return value


def _mapping(value: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth >= _DEEPEST:
        return {}
    return {key: _under(str(key), item, depth) for key, item in value.items()}


def _under(key: str, item: Any, depth: int) -> Any:
    """What stands under a key that names a secret is judged like an assignment."""
    if isinstance(item, str) and _SECRET_KEY.fullmatch(key):
        named = f'{key}: "'
        redacted = redact(f'{named}{item}"')
        return redacted.removeprefix(named).removesuffix('"') if redacted.startswith(named) else redact(item)
    return _value(item, depth + 1)


def _joined(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Parts without the secrets that begin in one text part and end in a later one."""
    texts = [
        index for index, part in enumerate(parts) if part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    if len(texts) < 2:  # noqa: PLR2004 - nothing to be split over
        return parts
    whole = "".join(parts[index]["text"] for index in texts)
    if redact(whole) == whole:
        return parts
    changed = {index: dict(parts[index]) for index in texts}
    for find in _FINDERS:
        _cut_across([changed[index] for index in texts], find)
    return tuple(changed.get(index, part) for index, part in enumerate(parts))


def _cut_across(parts: Sequence[dict[str, Any]], find: Finder) -> None:
    """The mark goes where a secret begins; its other pieces vanish from the parts after."""
    found = list(find("".join(part["text"] for part in parts)))
    offset = 0
    for part in parts:
        text: str = part["text"]
        cut = partial(_clipped, offset=offset, length=len(text))
        part["text"] = _replaced_pieces(text, [cut(*span) for span in found if _touches(span, offset, len(text))])
        offset += len(text)


def _touches(span: tuple[int, int, str], offset: int, length: int) -> bool:
    return span[0] < offset + length and span[1] > offset


def _clipped(start: int, end: int, kind: str, *, offset: int, length: int) -> tuple[int, int, str]:
    mark = f"[REDACTED:{kind}]" if start >= offset else ""
    return max(start - offset, 0), min(end - offset, length), mark


def _replaced_pieces(text: str, pieces: Sequence[tuple[int, int, str]]) -> str:
    out: list[str] = []
    done = 0
    for start, end, mark in pieces:
        out += (text[done:start], mark)
        done = end
    return "".join([*out, text[done:]])
