from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import product
from re import _parser as parser  # type: ignore[attr-defined] # how long the shortest match of a pattern is
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model import secret_shapes
from app.core.model.redaction import redact, redact_message, redact_value
from tests.corpus import agreed, assert_values, assert_verdicts, corpus, product_of
from tests.unit.talk import message
from tests.unit.timing import assert_linear, often

# Shapes of keys, assembled here so that nothing in this file is one.
ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2dE3f"
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
KEYS = {
    "aws_key": "AKIA" + "IOSFODNN7EXAMPLQ",
    "google_key": "AIza" + ALNUM[:35],
    "azure_secret": "abc" + "8Q~" + ALNUM[:34],
    "github_token": "ghp_" + ALNUM[:36],
    "gitlab_token": "glpat-" + ALNUM[:20],
    "slack_token": "xoxb-" + "123456789012-" + ALNUM[:24],
    "stripe_key": "sk_live_" + ALNUM[:24],
    "anthropic_key": "sk-ant-" + "api03-" + ALNUM,
    "openai_key": "sk-" + "proj-" + ALNUM,
    "huggingface_token": "hf_" + ALNUM[:34],
    "package_token": "npm_" + ALNUM[:36],
    "sendgrid_key": "SG." + ALNUM[:22] + "." + ALNUM[:40],
    "twilio_key": "SK" + HEX[:32],
    "telegram_token": "123456789:" + "AA" + ALNUM[:33],
    "cloud_token": "dop_v1_" + HEX,
    "throughline_key": "tl_" + ALNUM + "_-9",
    "vendor_key": "nvapi-" + ALNUM + ALNUM[:24],
    "jwt": "eyJ" + ALNUM[:20] + ".eyJ" + ALNUM + "." + ALNUM[:30],
    "private_key": "-----BEGIN RSA PRIVATE KEY-----\n" + f"{ALNUM}{ALNUM[:24]}\n" * 6 + "-----END RSA PRIVATE KEY-----",
}
SURROUNDINGS = ("{}", "use {} please", "key={}", '"{}"', "({})", "ключ:{}", "密钥{}。", "a\\n{}\\n", "{}, and {}")
SECRETS = corpus("secrets")


def filled(text: str) -> str:
    """The corpus contains a placeholder for each text with the shape of a key."""
    return text.replace("{ALNUM24}", ALNUM[:24]).replace("{ALNUM}", ALNUM).replace("{HEX}", HEX)


WHEREVER = product_of(
    "keys wherever they stand",
    (
        (f"{kind} {number}", {"kind": kind, "around": around}, True)
        for kind, (number, around) in product(KEYS, enumerate(SURROUNDINGS))
    ),
)


def test_a_key_goes_wherever_it_stands() -> None:
    def goes(text: dict[str, str]) -> bool:
        key, redacted = KEYS[text["kind"]], redact(text["around"].replace("{}", KEYS[text["kind"]]))
        assert key not in redacted
        assert key[10:30] not in redacted
        return redacted == text["around"].replace("{}", f"[REDACTED:{text['kind']}]") or "[REDACTED:secret]" in redacted

    assert_values(WHEREVER, goes)


def test_only_runs_that_may_be_keys_are_searched_for_keys_and_none_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    key, searched = secret_shapes._KEY, []

    class Spy:
        def finditer(self, *given: Any) -> Iterator[re.Match[str]]:
            searched.append(given[1:])
            return key.finditer(*given)

    monkeypatch.setattr(secret_shapes, "_KEY", Spy())
    assert list(secret_shapes._known_keys("We met in Turku, and decided to sell the boat. " * 50)) == []
    assert searched == [], "prose"
    for said in (one["said"] for one in SECRETS.texts()):
        whole = [(found.start(), found.end(), found.lastgroup or "secret") for found in key.finditer(said)]
        assert list(secret_shapes._known_keys(said)) == whole
    shortest = min(parser.parse(shape, re.ASCII).getwidth()[0] for shape in secret_shapes._KEYS.values())
    assert f"{{{shortest},}}" in secret_shapes._RUN.pattern


def test_a_value_that_is_named_goes_and_what_is_no_secret_stays() -> None:
    def goes(text: dict[str, str]) -> bool:
        said, secret = filled(text["said"]), filled(text.get("secret", ""))
        redacted = redact(said)
        assert redact(redacted) == redacted
        if not secret:
            among = f"We noted: {said}\nand went on."
            return agreed(redacted != said, redact(among) != among)
        assert "[REDACTED:" in redacted
        return secret not in redacted and redacted == text.get("redacted", redacted)

    assert_verdicts(SECRETS, goes)


@pytest.mark.parametrize(
    "named",
    [
        "contrase\u00f1a: ",
        "\u043f\u0430\u0440\u043e\u043b\u044c \u0442\u0430\u043a\u043e\u0439: ",
        "\u30d1\u30b9\u30ef\u30fc\u30c9: ",
        "\ube44\ubc00\ubc88\ud638: ",
    ],
    ids=ascii,
)
def test_a_name_is_read_also_where_its_letters_are_written_as_several_characters(named: str) -> None:
    """Texts copied from a PDF, and the names of files on some systems, are written so."""
    apart = unicodedata.normalize("NFD", named)
    assert apart != named
    for text in (named, apart):
        assert redact(f"{text}Tr4vi3so!x") == f"{text}[REDACTED:password]"


def test_what_surrounds_a_secret_stays() -> None:
    text = "Connect to postgresql://app:s3cr3t@db.example.org:5432/shop as app; PIN: 4821, then call Anna."
    assert redact(text) == (
        "Connect to postgresql://app:[REDACTED:password]@db.example.org:5432/shop as app; PIN: [REDACTED:pin], then"
        " call Anna."
    )


def test_control_a_number_with_the_check_sum_of_a_card_goes() -> None:
    redacted = [number for number in range(10) if redact(f"4929 1234 5678 901{number}") == "[REDACTED:card]"]
    assert len(redacted) == 1


def test_a_private_key_without_an_end_goes_as_far_as_it_looks_like_one() -> None:
    cut_off = KEYS["private_key"].partition("-----END")[0]
    assert redact(f"{cut_off}This sentence stays.") == "[REDACTED:private_key]\nThis sentence stays."


def test_the_end_of_a_private_key_goes_without_its_beginning() -> None:
    line = f"{ALNUM}{ALNUM[:24]}"
    end = "-----END RSA PRIVATE KEY-----"
    for cut in (f"{line}\n{line}\n{ALNUM[:30]}==\n{end}", f"{line}\\n{line}\\n{end}"):
        assert redact(f"the end is {cut}, {end}") == f"the end is [REDACTED:private_key], {end}"
        both = f"{KEYS['private_key']} and {cut} and {KEYS['private_key']}"
        assert redact(both) == "[REDACTED:private_key] and [REDACTED:private_key] and [REDACTED:private_key]"
    assert redact(f"It ends with {end}") == f"It ends with {end}"


def test_a_private_key_inside_json_goes() -> None:
    service_account = json.dumps({"type": "service_account", "private_key": KEYS["private_key"], "project": "p-1"})
    redacted = json.loads(redact(service_account))
    assert redacted == {"type": "service_account", "private_key": "[REDACTED:private_key]", "project": "p-1"}


PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": f"token {KEYS['github_token']}"},
    {"type": "tool_call", "id": "c1", "name": "login", "arguments": {"user": "anna", "password": "hunter2!", "n": 3}},
    {"type": "tool_result", "tool_call_id": "c1", "content": [{"headers": [f"Bearer {KEYS['jwt']}"]}]},
    {"type": "media", "media_type": "image/png", "data": "iVBOR" + KEYS["aws_key"]},
]


def test_parts_are_redacted_to_any_depth_and_the_original_stays() -> None:
    original = message(4, f"mine is {KEYS['aws_key']}", parts=PARTS)
    redacted = redact_message(original)
    written = json.dumps([redacted.content, *redacted.parts[:3]])
    for secret in ("hunter2!", KEYS["aws_key"], KEYS["jwt"], KEYS["github_token"]):
        assert secret not in written
    assert (redacted.seq, redacted.id, redacted.token_count) == (4, original.id, original.token_count)
    assert redacted.parts[1]["arguments"] == {"user": "anna", "password": "[REDACTED:password]", "n": 3}
    assert redacted.parts[3] == PARTS[3], "the data of media is never shown, and not looked at"
    assert original.parts[1]["arguments"]["password"] == "hunter2!"
    assert redact_message(redacted) == redacted


def test_a_message_without_secrets_is_the_very_same() -> None:
    plain = message(1, "Nothing to hide.", parts=[{"type": "text", "text": "Nothing at all."}])
    assert redact_message(plain) is plain


SPLIT = product_of(
    "keys split over two parts",
    (
        (f"{kind} {share}", {"kind": kind, "share": share}, f"first [REDACTED:{kind}] last")
        for kind, share in product([kind for kind in KEYS if kind != "private_key"], [0.3, 0.5, 0.8])
    ),
)


def test_a_secret_split_over_parts_goes_from_both() -> None:
    def joined(text: dict[str, Any]) -> str:
        secret = KEYS[text["kind"]]
        cut = int(len(secret) * text["share"])
        parts = [{"type": "text", "text": f"first {secret[:cut]}"}, {"type": "text", "text": f"{secret[cut:]} last"}]
        return "".join(part["text"] for part in redact_message(message(1, "", parts=parts)).parts)

    assert_values(SPLIT, joined)


def test_values_under_a_key_that_names_a_secret_go() -> None:
    given = {
        "db": {"password": "letmein"},
        "api_key": "a1b2c3d4e5f6g7h8",
        "tokens": 12,
        "token": "noun",
        "n": [1],
    }
    assert redact_value(given) == {
        "db": {"password": "[REDACTED:password]"},
        "api_key": "[REDACTED:secret]",
        "tokens": 12,
        "token": "noun",
        "n": [1],
    }


def test_numbers_under_such_a_key_go_as_they_do_in_a_text() -> None:
    assert redact_value({"pin": 4829, "cvv": 123, "user": {"password": 12345678}}) == {
        "pin": "[REDACTED:pin]",
        "cvv": "[REDACTED:pin]",
        "user": {"password": "[REDACTED:password]"},
    }
    plain = {"token": 42, "tokens": 512, "key": 1, "code": 200, "pin": True, "pin_share": 0.2, "password_length": 8}
    assert redact_value(plain) == plain, "control: numbers that are no secrets"


def test_a_secret_goes_also_as_the_name_of_a_value() -> None:
    used = {KEYS["github_token"]: {"requests": 3}, "the day of the last request": "12 May"}
    assert redact_value({"by token": used}) == {
        "by token": {"[REDACTED:github_token]": {"requests": 3}, "the day of the last request": "12 May"}
    }


def test_no_value_is_lost_because_its_name_is_a_secret_of_the_same_kind() -> None:
    key = KEYS["aws_key"]
    people = redact_value({key: "Ann", f"{key[:-1]}R": "Bob", f"{key[:-1]}S": "Eve"})
    assert people == {
        "[REDACTED:aws_key]": "Ann", "[REDACTED:aws_key] (2)": "Bob", "[REDACTED:aws_key] (3)": "Eve"
    }  # fmt: skip
    assert redact_value(people) == people


@pytest.mark.parametrize("line", ["data: {}", 'data: {{"image": "data:image/png;base64,aGk=", "key": "{}"}}'])
def test_a_line_of_an_event_stream_is_no_data_of_a_medium(line: str) -> None:
    told = line.format(KEYS["github_token"])
    parts = [{"type": "tool_result", "tool_call_id": "c", "content": told}, {"type": "text", "text": told}]
    found = redact_message(message(1, "", parts=parts)).parts
    assert found[0]["content"] == found[1]["text"] == line.format("[REDACTED:github_token]")
    medium = f"data:image/png;base64,{KEYS['aws_key']}"
    assert redact_value([medium]) == [medium], "control: data are left as they are"


pieces = st.one_of(
    st.sampled_from(
        [
            *KEYS.values(),
            *(filled(text["said"]) for text in SECRETS.texts(expected=True)),
            "password",
            "=",
            ": ",
            '"',
            "://",
            "@",
            "\n",
            "[REDACTED:",
            "]",
        ]
    ),
    st.text(max_size=10),
    st.characters(categories=["Cs", "Cc", "Cf"]),
)


@given(st.lists(pieces, max_size=6).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | pieces, lambda inner: st.lists(inner) | st.dictionaries(pieces, inner)
    )
)
def test_nothing_raises(value: Any) -> None:
    redact_value(value)
    redact_message(message(1, "", parts=[{"type": "tool_result", "tool_call_id": "c", "content": value}]))


def test_a_value_of_endless_depth_ends() -> None:
    value: Any = KEYS["aws_key"]
    for _ in range(500):
        value = [value]
    assert KEYS["aws_key"] not in json.dumps(redact_value(value))


HOSTILE = [
    "curl -u " * 50_000,
    "password to " * 40_000,
    "password " * 40_000,
    "session=" * 50_000,
    "4111.1111." * 40_000,
    "my password is aa " * 20_000,
    "a" * 400_000,
    "eyJ" * 130_000,
    "eyJaaaaaaaaaa." * 30_000,
    "-----BEGIN PRIVATE KEY-----" * 14_000,
    # A key ends after 64 KiB at most; what follows costs more per character, so the quarter is longer than that.
    "-----BEGIN PRIVATE KEY-----" + "A" * 800_000,
    "password" * 50_000,
    "password: " * 40_000,
    'password="' * 40_000,
    "password for " * 30_000,
    "sk-" * 130_000,
    "://a:" * 80_000,
    "1" * 400_000,
    "4111 " * 80_000,
    "seed phrase: " + "able " * 80_000,
    "password:\n" * 40_000,
    "password:\na1b2c3\n" * 25_000,
    "a1b2\n" * 80_000 + "password",
    "password: |\n  " * 25_000,
    "passphrase: " + "able " * 80_000,
    "passphrase: able able able " * 12_000,
    "redis://a:" * 40_000,
    "redis://a:" + "b@" * 200_000,
    "-eyJ" * 100_000,
    "-eyJ" * 250 + "." + "a" * 400_000,
    "eyJhbGciOi." * 36_000,
    "пароль от " * 40_000,
    "password for a1" * 26_000,
    'password="a\\"' * 28_000,
    "password='a" * 36_000,
    "password=«a" * 36_000,
    "p\u0430ss\u200bword " * 36_000,
    "&quot;" * 66_000,
    "aб" * 200_000,
    "bearer " * 60_000,
    "?sig=" * 80_000,
    "\\n" * 200_000,
    "a,password\n" * 35_000,
    "a,password\n" + "x,a1b2c3\n" * 40_000,
    "a|password\n" + "-" * 400_000,
    "|password" * 40_000 + "\n",
]


def test_values_below_the_name_of_their_column_go_while_the_table_lasts() -> None:
    rows = "user;password\nann;hunter22x\nbob;hunter23x\n\nx;hunter24x\n"
    assert redact(rows) == "user;password\nann;[REDACTED:password]\nbob;[REDACTED:password]\n\nx;hunter24x\n"
    wider = "| user | password |\n|---|---|\n| ann | hunter22x |\n| a | b | hunter23x |\n"
    assert redact(wider) == wider.replace("hunter22x", "[REDACTED:password]")
    tuples = "('user', 'password'),\n('t_K4', 't_K4_1'),\n"
    assert redact(tuples) == tuples, "a name of a column has no signs of code"


def test_escapes_of_json_and_of_urls_hide_no_secret() -> None:
    told = {"пароль": "hunter22x", "contraseña": "hunter23x", "note": f"“{KEYS['github_token']}”"}
    once = json.dumps(told)
    shown = {"пароль": "[REDACTED:password]", "contraseña": "[REDACTED:password]", "note": "“[REDACTED:github_token]”"}
    assert json.loads(redact(once)) == shown
    assert json.loads(json.loads(redact(json.dumps(once)))) == shown, "within a text of JSON"
    assert redact(f"GET /?q=my%20{KEYS['aws_key']}") == "GET /?q=my%20[REDACTED:aws_key]"
    trains = "https://trains.example/gda%C5%84sk-wroclaw-trains-2024-timetable"
    assert redact(trains) == trains, "a letter is escaped"
    assert redact('"password": "hunter\\u0022x22"') == '"password": "[REDACTED:password]"', "control"
    key = KEYS["github_token"]
    for before in ("\\u003d", "\\u0022", "\\u000a", "\\x27", "%0A", "%253D", "=3D", "\\f"):
        assert redact(f"a{before}{key}") == f"a{before}[REDACTED:github_token]"
    assert redact("a=1\\u0026sig=abcdEFGH12345678") == "a=1\\u0026sig=[REDACTED:url_token]"
    assert redact("\\u0022password\\u0022:\\u0022hunter22x\\u0022") == (
        "\\u0022password\\u0022:\\u0022[REDACTED:password]\\u0022"
    )


def test_colours_of_a_terminal_hide_no_secret() -> None:
    assert redact(f"\x1b[32m{KEYS['aws_key']}\x1b[0m") == "\x1b[32m[REDACTED:aws_key]"
    assert redact(f"\\u001b[32m{KEYS['aws_key']}") == "\\u001b[32m[REDACTED:aws_key]"
    assert "hunter22x" not in redact("\x1b[01;31m\x1b[Kpassword\x1b[m\x1b[K=hunter22x"), "as grep shows it"
    for command in ("\x1b(B\x1b[m", "\x1b[38:2::255:0:0m", "\x1b[38;2;255;255;255;48;2;100;100;100m"):
        assert redact(f"{command}{KEYS['aws_key']}") == f"{command}[REDACTED:aws_key]"


def test_slashes_as_php_escapes_them_and_numbers_of_html_hide_no_secret() -> None:
    address = '{"url": "https:\\/\\/ann:%s@db.example\\/x"}'
    assert redact(address % "hunter22x") == address % "[REDACTED:password]"
    assert redact("password&#61;hunter22x") == "password&#61;[REDACTED:password]"
    assert redact("a?x&#x3D;1&amp;sig&#x3D;abcdEFGH12345678") == "a?x&#x3D;1&amp;sig&#x3D;[REDACTED:url_token]"
    described = "{pem: &#x3C;string&#x3E;[, passphrase: &#x3C;string&#x3E;]}"
    assert redact(described) == described


@pytest.mark.parametrize(
    "unseen", [0x80, 0x180F, 0x2065, 0xFFF9, 0x1DC0, 0xFE20, 0x1D173, 0xE0100, 0xE01EF, 0xE0FFF], ids=hex
)
def test_no_character_that_shows_nothing_hides_a_secret(unseen: int) -> None:
    key = KEYS["aws_key"]
    assert redact(f"{key[:9]}{chr(unseen)}{key[9:]}") == "[REDACTED:aws_key]"
    assert redact(f"pass{chr(unseen)}word: hunter22x").endswith("word: [REDACTED:password]")


def test_a_session_is_known_behind_the_name_of_its_program() -> None:
    assert redact("Cookie: shop_session=abcdef0123456789") == "Cookie: shop_session=[REDACTED:session]"


def test_tag_characters_hide_no_secret() -> None:
    tag = "\U000e0041"
    key = KEYS["aws_key"]
    assert redact(f"the key is {key[:4]}{tag}{key[4:]}.") == "the key is [REDACTED:aws_key]."
    assert redact(f"pass{tag}word=hunter22xyz") == "pass\ufffdword=[REDACTED:password]"
    assert redact_value({f"a{tag}": 1}) == {"a\ufffd": 1}, "a short key is no secret, but it is read"
    assert redact_value({f"pass{tag}word": "hunter22xyz"}) == {"pass\ufffdword": "[REDACTED:password]"}
    assert redact_value({"pass\u200bword": "hunter22xyz"}) == {"pass\u200bword": "[REDACTED:password]"}


@pytest.mark.long
@pytest.mark.parametrize("text", often(HOSTILE), ids=lambda text: text[:12])
def test_hostile_input_takes_linear_time(text: str) -> None:
    assert_linear(redact, text)
