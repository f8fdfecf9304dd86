"""Makes values for the corpus of secrets, by seed: ``{card}`` becomes a card's number, ``{hex40}`` forty characters.

The corpus names values, so that no file has anything in the shape of a real key.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

_NAME: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_SIZED: Final = re.compile(r"(alnum|hex|digits|base64|base64url|lower)_?(\d{1,3})")
_ALNUM: Final = string.ascii_letters + string.digits
_ALPHABETS: Final[Mapping[str, str]] = {
    "alnum": _ALNUM,
    "hex": "0123456789abcdef",
    "digits": string.digits,
    "base64": _ALNUM + "+/",
    "base64url": _ALNUM + "-_",
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
}
_WORDS: Final = (
    "amber",
    "anchor",
    "apple",
    "arrow",
    "autumn",
    "banjo",
    "basil",
    "beacon",
    "bridge",
    "candle",
    "canyon",
    "cedar",
    "cobalt",
    "copper",
    "coral",
    "cotton",
    "cradle",
    "daisy",
    "desert",
    "dragon",
    "ember",
    "falcon",
    "fern",
    "forest",
    "garden",
    "ginger",
    "glacier",
    "hazel",
    "honey",
    "island",
    "jasmine",
    "kettle",
    "lantern",
    "lemon",
    "maple",
    "marble",
    "meadow",
    "mirror",
    "nectar",
    "ocean",
    "olive",
    "orchid",
    "pepper",
    "pigeon",
    "planet",
    "quartz",
    "rabbit",
    "raven",
)
_WORDS_RU: Final = (
    "ромашка",
    "подсолнух",
    "береза",
    "синица",
    "корабль",
    "ветер",
    "лампа",
    "зима",
    "облако",
    "яблоко",
    "медведь",
    "дорога",
    "река",
)
_WEAK: Final = ("letmein", "sunshine", "trustno1", "qwertyuiop", "dragon", "Liverpool", "iloveyou", "monkey123")
_SEEDS: Final = (
    "abandon",
    "ability",
    "able",
    "about",
    "above",
    "absent",
    "absorb",
    "abstract",
    "absurd",
    "abuse",
    "access",
    "accident",
    "account",
    "accuse",
    "achieve",
    "acid",
    "acoustic",
    "acquire",
    "across",
    "act",
    "action",
    "actor",
    "actress",
    "actual",
    "adapt",
    "add",
    "addict",
    "address",
    "adjust",
    "admit",
    "adult",
    "advance",
)
_ISSUERS: Final = ("4", "51", "55", "2221", "6011", "3528")


class Drawn:
    """Values by name, from one seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def filled(self, text: str) -> str:
        """A text with a value for each name in braces; other braces are kept."""
        return _NAME.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        name = found[1]
        if name in _MADE:
            return _MADE[name](self)
        if name in _KEYS:
            return "".join(self._piece(piece) for piece in _KEYS[name].split(" "))
        sized = _SIZED.fullmatch(name)
        return self.signs(sized[1], int(sized[2])) if sized else found.group()

    def _piece(self, piece: str) -> str:
        """A piece of a key: ``hex:32`` is drawn, anything else is kept as it is."""
        alphabet, colon, size = piece.partition(":")
        return self.signs(alphabet, int(size)) if colon and alphabet in _ALPHABETS else piece

    def signs(self, alphabet: str, size: int) -> str:
        """So many characters of an alphabet."""
        return "".join(self._random.choices(_ALPHABETS[alphabet], k=size))

    def word(self) -> str:
        """An English word."""
        return self._random.choice(_WORDS)

    def password(self) -> str:
        """A password as people choose them, or as a generator makes them."""
        word, digits = self.word(), self.signs("digits", 3)
        return self._random.choice(
            (f"{word.capitalize()}{digits}!", f"{word}-{self.word()}-{digits}", f"{word}#{digits}{self.word()}"),
        )

    def plain_password(self) -> str:
        """A password without characters that end a value in prose, an address or a shell."""
        word, digits = self.word(), self.signs("digits", 3)
        generated = f"{self.signs('alnum', 11)}{digits}x"
        return self._random.choice((f"{word.capitalize()}{digits}", f"{word}_{self.word()}{digits}", generated))

    def url_password(self) -> str:
        """A password as it is escaped in an address."""
        return f"{self.word()}%40{self.signs('digits', 3)}"

    def one_of(self, values: Sequence[str]) -> str:
        """One of these."""
        return self._random.choice(values)

    def many(self, values: Sequence[str], count: int) -> str:
        """So many of these words, in a row."""
        return " ".join(self._random.choices(values, k=count))

    def card(self, beginning: str = "", size: int = 16) -> str:
        """A number with the check sum of a card."""
        start = beginning or self.one_of(_ISSUERS)
        body = start + self.signs("digits", size - 1 - len(start))
        return body + next(digit for digit in string.digits if _passes(body + digit))

    def no_card(self) -> str:
        """A number as long as that of a card, without its check sum."""
        number = self.card()
        return number[:-1] + str((int(number[-1]) + 3) % 10)

    def jwt(self, size: int) -> str:
        """A signed token with a payload of about so many bytes."""
        header = _encoded(json.dumps({"alg": "HS256", "typ": "JWT"}))
        payload = _encoded(json.dumps({"sub": self.signs("digits", 10), "scope": self.signs("alnum", size)}))
        return f"{header}.{payload}.{self.signs('base64url', 43)}"

    def jwe(self) -> str:
        """An encrypted token of five pieces, of which the second is empty."""
        header = _encoded(json.dumps({"alg": "dir", "enc": "A256GCM"}))
        rest = (self.signs("base64url", size) for size in (16, 120, 22))
        return f"{header}..{'.'.join(rest)}"

    def block(self, label: str, lines: int) -> str:
        """A block of base64 between its marks."""
        return f"-----BEGIN {label}-----\n{self.lines(lines)}\n-----END {label}-----"

    def lines(self, count: int) -> str:
        """Lines of base64."""
        return "\n".join(self.signs("base64", 64) for _ in range(count))

    def hidden(self, text: str) -> str:
        """The text with a zero-width space in it."""
        place = self._random.randrange(6, len(text) - 2)
        return f"{text[:place]}\u200b{text[place:]}"

    def uuid(self) -> str:
        """A random UUID."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def key(self, name: str) -> str:
        """A key of a provider."""
        return self.filled(f"{{{name}}}")


def _passes(digits: str) -> bool:
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _in_fours(number: str, between: str) -> str:
    return between.join(number[place : place + 4] for place in range(0, len(number), 4))


def _wide(text: str) -> str:
    return "".join(chr(ord(sign) + 0xFEE0) for sign in text)


_KEYS: Final[Mapping[str, str]] = {
    "aws_key": "AKIA upper:16",
    "google_key": "AIza base64url:35",
    "azure_secret": "alnum:3 8Q~ alnum:34",
    "github_token": "ghp_ alnum:36",
    "github_pat": "github_ pat_ alnum:22 _ alnum:59",
    "gitlab_token": "glpat- alnum:20",
    "slack_token": "xoxb- digits:12 - digits:12 - alnum:24",
    "stripe_key": "sk_ live_ alnum:24",
    "anthropic_key": "sk-ant- api03- base64url:93 AA",
    "openai_key": "sk- proj- alnum:48",
    "openai_old": "sk- alnum:20 T3BlbkFJ alnum:20",
    "openrouter_key": "sk- or-v1- hex:64",
    "huggingface_token": "hf_ alnum:34",
    "npm_token": "npm_ alnum:36",
    "pypi_token": "pypi- AgEIcHlwaS5vcmc alnum:120",
    "sendgrid_key": "SG. alnum:22 . alnum:43",
    "twilio_key": "SK hex:32",
    "telegram_token": "digits:9 :AA alnum:33",
    "digitalocean_token": "dop_v1_ hex:64",
    "shopify_token": "shpat_ hex:32",
    "vault_token": "hvs. alnum:90",
    "vault_batch_token": "hvb. alnum:120",
    "neon_token": "npg_ alnum:12",
    "supabase_secret": "sb_ secret_ alnum:31",
    "mailchimp_key": "hex:32 -us 21",
    "mailgun_key": "key- hex:32",
    "brevo_key": "xkeysib- hex:64 - alnum:16",
    "groq_key": "gsk_ alnum:52",
    "xai_key": "xai- alnum:80",
    "perplexity_key": "pplx- alnum:48",
    "replicate_token": "r8_ alnum:37",
    "databricks_token": "dapi hex:32",
    "linear_key": "lin_api_ alnum:40",
    "notion_token": "ntn_ alnum:46",
    "postman_key": "PMAK- hex:24 - hex:34",
    "grafana_token": "glsa_ alnum:32 _ hex:8",
    "newrelic_key": "NRAK- upper:27",
    "planetscale_token": "pscale_tkn_ alnum:43",
    "rubygems_key": "rubygems_ hex:48",
    "tailscale_key": "tskey- auth- alnum:12 - alnum:32",
    "docker_token": "dckr_pat_ alnum:27",
    "age_key": "AGE-SECRET-KEY-1 upper:58",
    "doppler_token": "dp.pt. alnum:43",
    "airtable_token": "pat alnum:14 . hex:64",
    "onepassword_token": "ops_eyJ alnum:240",
    "contentful_token": "CFPAT- alnum:43",
    "yandex_key": "AQVN alnum:36",
    "cloudflare_key": "v1.0- hex:24 - hex:146",
    "fireworks_key": "fw_ alnum:24",
    "together_key": "tgp_v1_ alnum:43",
    "sentry_token": "sntrys_ alnum:120",
    "figma_token": "figd_ alnum:40",
    "square_token": "sq0atp- alnum:22",
    "apify_token": "apify_api_ alnum:36",
    "terraform_token": "alnum:14 .atlasv1. alnum:64",
    "pulumi_token": "pul- hex:40",
    "langsmith_key": "lsv2_pt_ hex:32 _ hex:10",
}
_MADE: Final[Mapping[str, Callable[[Drawn], str]]] = {
    "word": Drawn.word,
    "word_ru": lambda drawn: drawn.one_of(_WORDS_RU),
    "weak": lambda drawn: drawn.one_of(_WEAK),
    "password": Drawn.password,
    "password_plain": Drawn.plain_password,
    "password_ru": lambda drawn: drawn.one_of(_WORDS_RU).capitalize() + drawn.signs("digits", 4),
    "url_password": Drawn.url_password,
    "d": lambda drawn: drawn.signs("digits", 1),
    "digits4_wide": lambda drawn: _wide(drawn.signs("digits", 4)),
    "seed12": lambda drawn: drawn.many(_SEEDS, 12),
    "seed24": lambda drawn: drawn.many(_SEEDS, 24),
    "card": Drawn.card,
    "card_spaced": lambda drawn: _in_fours(drawn.card(), " "),
    "card_dashed": lambda drawn: _in_fours(drawn.card(), "-"),
    "card_dotted": lambda drawn: _in_fours(drawn.card(), "."),
    "card_slashed": lambda drawn: _in_fours(drawn.card(), "/"),
    "card_nbsp": lambda drawn: _in_fours(drawn.card(), "\u00a0"),
    "card_thin": lambda drawn: _in_fours(drawn.card(), "\u202f"),
    "card_wide": lambda drawn: _wide(drawn.card()),
    "card_hidden": lambda drawn: drawn.hidden(drawn.card()),
    "amex": lambda drawn: drawn.card("37", 15),
    "mir_spaced": lambda drawn: _in_fours(drawn.card("2202"), " "),
    "unionpay": lambda drawn: drawn.card("62"),
    "notcard": Drawn.no_card,
    "notcard_spaced": lambda drawn: _in_fours(drawn.no_card(), " "),
    "jwt": lambda drawn: drawn.jwt(60),
    "jwt_long": lambda drawn: drawn.jwt(9_000),
    "jwt_hidden": lambda drawn: drawn.hidden(drawn.jwt(60)),
    "jwe": Drawn.jwe,
    "pem": lambda drawn: drawn.block("PRIVATE " + "KEY", 20),
    "pem_ec": lambda drawn: drawn.block("EC PRIVATE " + "KEY", 4),
    "pem_openssh": lambda drawn: drawn.block("OPENSSH PRIVATE " + "KEY", 6),
    "pem_long": lambda drawn: drawn.block("RSA PRIVATE " + "KEY", 400),
    "pem_escaped": lambda drawn: drawn.block("PRIVATE " + "KEY", 20).replace("\n", "\\n"),
    "pem_cut": lambda drawn: drawn.block("PRIVATE " + "KEY", 12).partition("\n-----END")[0],
    "base64_lines": lambda drawn: drawn.lines(12),
    "uuid": Drawn.uuid,
    "ulid": lambda drawn: "01J" + drawn.signs("upper", 23),
    "licence": lambda drawn: "-".join(drawn.signs("upper", 5) for _ in range(5)),
    "github_hidden": lambda drawn: drawn.hidden(drawn.key("github_token")),
    "aws_wide": lambda drawn: _wide(drawn.key("aws_key")),
}
