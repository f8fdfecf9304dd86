"""Secrets that are known by their own shape: prefixes of providers, blocks, places in URLs, check sums.

Every finder takes a text in plain characters, runs in linear time, and yields what it finds in order.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from app.core.text.patterns import compiled

FoundSecret = tuple[int, int, str]
"""Start, end and kind of a secret."""
SecretFinder = Callable[[str], Iterator[FoundSecret]]
"""Yields the secrets that it finds in a text, in order and without overlaps."""

# --- keys that providers mark with a prefix -------------------------------------------------------------------------

_BEFORE: Final = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=[%=][0-7][0-9A-Fa-f])|(?<=%25[0-7][0-9A-Fa-f])|(?<=\\u00[01][0-9a-f]))"
)
"""A key may also follow the escaped sign of a JSON string, a URL, a URL in a URL, or an e-mail ("=3D");
"gda%C5%84sk-2024" has an escaped letter there, and is none."""
_TOKEN: Final = 1_000_000
"""The most characters in one piece of a token, if the token begins where a run of its characters begins.

So each run is read only once.
"""
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
        r"do[por]_v1_[a-f0-9]{64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|lin_api_[A-Za-z0-9]{40}|hv[sbr]\.[\w-]{24,1000}+"
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
        r"|npg_[A-Za-z0-9]{10,64}+|sb_secret_[\w-]{20,64}+|[0-9a-f]{32}-us\d{1,2}(?!\w)|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"
        r"|ops_eyJ[\w-]{100,4000}+|CFPAT-[\w-]{40,64}+|tgp_v1_[\w-]{40,64}+|apify_api_[A-Za-z0-9]{30,50}+"
        r"|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{50,100}+|pul-[a-f0-9]{40}(?!\w)|fw_[A-Za-z0-9]{20,40}+(?!\w)"
        r"|dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}|glc_eyJ[\w+/=-]{60,400}+|lin_oauth_[a-f0-9]{64}|fm[12]_[\w+/=-]{80,2000}+"
        r"|rnd_[A-Za-z0-9]{28,40}+(?!\w)|csk-[a-z0-9]{40,60}+|jina_[a-f0-9]{32}\w{20,40}+|vercel_blob_rw_\w{30,80}+"
        r"|v1\.0-[a-f0-9]{24}-[a-f0-9]{100,200}|discord(?:app)?\.com/api/webhooks/\d{15,22}/[\w-]{50,100}+"
    ),
    "throughline_key": r"tl_[\w-]{43}(?![\w-])",
    "jwt": (
        rf"(?<![\w-])eyJ[\w-]{{8,{_TOKEN}}}+\.(?:[\w-]{{0,{_TOKEN}}}+\.){{1,3}}[\w-]{{8,{_TOKEN}}}+"
        r"|eyJ[\w-]{8,1000}+\.(?:[\w-]{0,4000}+\.){1,3}[\w-]{8,4000}+"
    ),
}
_KEY: Final = compiled(
    rf"(?=[\w~.-]){_BEFORE}(?:{'|'.join(f'(?P<{kind}>{shape})' for kind, shape in _KEYS.items())})", re.ASCII
)
"""The first character is tested first: no key begins with a character of another script."""
_RUN: Final = compiled(r"[\w+./:=~-]{14,}+", re.ASCII)
"""A run that may hold a key: keys have no other characters, and none is shorter.

So words of prose are passed over quickly. A pattern that is searched in megabytes holds up all other threads.
"""


def _known_keys(text: str) -> Iterator[FoundSecret]:
    for run in _RUN.finditer(text):
        for found in _KEY.finditer(text, run.start(), run.end()):
            yield found.start(), found.end(), found.lastgroup or "secret"


# --- blocks --------------------------------------------------------------------------------------------------------

_KEY_BLOCK: Final = 20_000  # any characters between BEGIN and END up to this many; longer blocks must look like a key
_BEGIN: Final = compiled(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d{1,4}")
_END: Final = compiled(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES: Final = compiled(
    r"(?:(?:\s|\\[nr]){0,8}[A-Za-z0-9+/=]{24,200}){0,20000}+(?:(?:\s|\\[nr]){0,8}[A-Za-z0-9+/]{1,80}={1,2})?"
)

_LAST_LINE: Final = compiled(rf"(?:(?:\s|\\[nr]){{0,8}}{_END.pattern})?")


_LINES_BEFORE_END: Final = compiled(
    r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{24,200}+(?:\s|\\[nr]){1,8}+){1,20000}+"
    r"(?:[A-Za-z0-9+/]{1,80}+={0,2}(?:\s|\\[nr]){0,8}+)?"
)


def _private_keys(text: str) -> Iterator[FoundSecret]:
    """Private keys, from BEGIN to END; where one of the two is missing, as far as the lines look like a key."""
    if "PRIVATE KEY" not in text and "Private-Lines" not in text:
        return
    ends = list(_END.finditer(text))
    done = place = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        found = bisect_left(ends, begin.end(), place, key=re.Match.end)
        yield from _ends_of_keys(text, ends[place:found], done)
        place = found
        if place < len(ends) and ends[place].end() - begin.start() <= _KEY_BLOCK:
            done = ends[place].end()
        else:
            lines = _KEY_LINES.match(text, begin.end())
            end = _LAST_LINE.match(text, lines.end() if lines else begin.end())
            done = end.end() if end else begin.end()
        yield begin.start(), done, "private_key"
    yield from _ends_of_keys(text, ends[place:], done)


def _ends_of_keys(text: str, ends: Iterable[re.Match[str]], done: int) -> Iterator[FoundSecret]:
    # A tool may read a file in pieces, so that the beginning of a key is in another message.
    for end in ends:
        if end.start() >= done:
            for lines in _LINES_BEFORE_END.finditer(text, max(done, end.start() - _KEY_BLOCK), end.start()):
                if lines.end() == end.start():
                    yield lines.start(), end.end(), "private_key"
            done = end.end()


# --- secrets in URLs and headers -----------------------------------------------------------------------------------

_IN_URL: Final = compiled(r"(?<=://)[^\s:/@?#\"<>]{0,100}+:(?P<value>[^\s/?#\"<>]{1,200})@(?=[\w\[])")
_IN_DATABASE_URL: Final = compiled(
    r"(?<![a-z])(?:postgres(?:ql)?|mysql|mariadb|mssql|sqlserver|oracle|mongodb|rediss?|valkeys?|amqps?|clickhouse|nats"
    r"|kafka|s?ftps?|smtps?|ldaps?|imaps?|cockroachdb|snowflake)(?:\+\w{1,20})?://[^\s:/@?#\"<>]{0,100}+:(?!\d{1,5}[/?])"
    r"(?P<value>[^\s\"'<>]{1,200}?)@(?=[\w.-]{1,253}+(?:[:/?,;\s\"')]|\Z)|\[)",
    re.IGNORECASE,
)
_NO_PASSWORD: Final = compiled(
    r"\$[{(A-Z]|[{*]|(?:password|passwd|pass|pwd|secret|changeme|x{3,}|your[-_]?password)\Z", re.IGNORECASE
)
_HEADER: Final = compiled(
    r"\b(?:bearer\s{1,4}(?P<bearer>(?=[\w.~+/-]{0,254}\d)[\w.~+/-]{16,4000}+=*)"
    r"|authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|token|apikey|digest)"
    r"\s{1,4}(?P<authorization>[\w.~+/-]{8,4000}+=*))",
    re.IGNORECASE | re.ASCII,
)
_SIGNED: Final = compiled(
    r"[?&](?:sig|signature|x-amz-signature|x-goog-signature|access_token|api_?key"
    r"|auth_?token|token)=(?P<value>[\w%+/.~-]{12,2000}+)",
    re.IGNORECASE | re.ASCII,
)


_COMMAND: Final = compiled(
    r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:(?P<curl>[^\s\"']{1,200})"
    r"|\b(?:mysql(?:dump|admin)?|mariadb(?:-dump)?)\b[^\n]{0,200}?\s-p[\"']?(?P<sql>[^\s\"']{4,200})"
    r"|\bredis-cli\b[^\n]{0,200}?\s-a\s[\"']?(?P<redis>[^\s\"']{4,200})"
    r"|\bdocker\s{1,4}login\b[^\n]{0,200}?\s(?:-p|--password)[ =][\"']?(?P<docker>[^\s\"']{4,200})"
    r"|\bsshpass\s{1,4}-p\s?[\"']?(?P<ssh>[^\s\"']{1,200})"
)
_COMMANDS: Final = ("curl", "mysql", "mariadb", "redis-cli", "sshpass", "docker")
_COOKIE: Final = compiled(
    r"(?<![^\W_])(?:session(?:[ _-]?id)?|sess(?:id)?|sid|phpsessid|jsessionid|asp\.net_sessionid|connect\.sid"
    r"|auth(?:_session)?"
    r"|remember_\w{1,40})=(?P<value>(?=[\w%+/.~-]{0,254}\d)[\w%+/.~-]{16,2000}+)",
    re.IGNORECASE | re.ASCII,
)


def _in_commands(text: str) -> Iterator[FoundSecret]:
    if any(command in text for command in _COMMANDS):
        for found in _COMMAND.finditer(text):
            value = found.lastgroup or 0
            if not _NO_PASSWORD.match(found[value]):
                yield *found.span(value), "password"


def _in_cookies(text: str) -> Iterator[FoundSecret]:
    if "=" in text:
        for found in _COOKIE.finditer(text):
            yield *found.span("value"), "session"


def _in_urls(text: str, *, shaped: re.Pattern[str] = _IN_URL) -> Iterator[FoundSecret]:
    if "://" in text:
        for found in shaped.finditer(text):
            if not _NO_PASSWORD.match(found["value"]):
                yield *found.span("value"), "password"


def _url_signatures(text: str) -> Iterator[FoundSecret]:
    if "=" in text:
        for found in _SIGNED.finditer(text):
            yield *found.span("value"), "url_token"


def _in_headers(text: str) -> Iterator[FoundSecret]:
    for found in _HEADER.finditer(text):
        kind = found.lastgroup or "bearer"
        yield *found.span(kind), kind


# --- payment cards -------------------------------------------------------------------------------------------------

_CARD: Final = compiled(r"(?<![\w.#№+-])(?:(?:\d[ /-]{0,2}){13,18}\d|\d{4}(?:\.\d{4}){3})(?![\w-]|\.\d)", re.ASCII)
_BETWEEN_DIGITS: Final = str.maketrans("", "", " ./-")
_ISSUERS: Final = compiled(
    r"4(?:\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|220[0-4]\d{12,15}"
    r"|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|6(?:011|4[4-9]\d|5\d\d)\d{12}|62\d{14,17}"
)


def _cards(text: str) -> Iterator[FoundSecret]:
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


FINDERS_BEFORE_NAMES: Final[tuple[SecretFinder, ...]] = (
    _private_keys,
    _known_keys,
    partial(_in_urls, shaped=_IN_DATABASE_URL),
    _in_urls,
    _in_commands,
    _url_signatures,
    _in_cookies,
    _in_headers,
)
"""The finders that are tried before those of values that a word names."""
FINDERS_AFTER_NAMES: Final[tuple[SecretFinder, ...]] = (_cards,)
