from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.fencing.redaction import redact, redact_message, redact_value
from tests.unit.talk import message

# Shapes of keys, put together here so that nothing in this file is one.
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
NAMED = [
    ("My password is Sunshine", "Sunshine"),
    ("my password is letmein.", "letmein"),
    ("the wifi password's blue-Tiger9", "blue-Tiger9"),
    ("pass: Qwerty!23", "Qwerty!23"),
    ("the root pw is Tr33house!", "Tr33house!"),
    ("login admin, password admin123!", "admin123!"),
    ("use the password `x9!kk2` please", "x9!kk2"),
    ("the password was changed to N3wPass!", "N3wPass!"),
    ("I set the password to N3wPass!", "N3wPass!"),
    ("the new password will be N3wPass!", "N3wPass!"),
    ("<password>hunter2</password>", "hunter2"),
    ("мой пароль hunter22", "hunter22"),
    ("логин admin, пароль ромашка7", "ромашка7"),
    ("пароль такой: zima2026", "zima2026"),
    ("пароль поменял на Zima_2026", "Zima_2026"),
    ("паролем будет qwerty77", "qwerty77"),
    ("пароль = ромашка", "ромашка"),
    ("кодовое слово: подсолнух", "подсолнух"),
    ("密码 hunter22", "hunter22"),
    ("curl -u bob:hunter2 https://x.example", "hunter2"),
    ("mysql -u root -pS3cret99 shop", "S3cret99"),
    ("sshpass -p 'S3cret99' ssh box", "S3cret99"),
    ("tool --password S3cret99", "S3cret99"),
    ("Cookie: session=" + ALNUM + "; a=1", ALNUM),
    ("https://discord.com/api/webhooks/123456789012345678/" + ALNUM * 2, ALNUM),
    ("апи ключ a1b2c3d4e5f6g7h8i9", "a1b2c3d4e5f6g7h8i9"),
    ("токен a1b2c3d4e5f6g7h8i9", "a1b2c3d4e5f6g7h8i9"),
    ("Private-Lines: 14\nAAABAQCxyz0123456789abcdefghijklmnop", "AAABAQCxyz"),
    ("pin code 4821", "4821"),
    ("card 4539-5787-6362-1486 cvv 991", "991"),
    ("4539.5787.6362.1486", "4539.5787"),
    ("OTP: 482913", "482913"),
    ("password=hunter2", "hunter2"),
    ("DB_PASSWORD=letmein\n", "letmein"),
    ("password: hunter2", "hunter2"),
    ("The password is hunter2.", "hunter2"),
    ("Password for the wifi: blue-Tiger9", "blue-Tiger9"),
    ('{"password": "correct horse battery"}', "correct horse battery"),
    ('{\\"password\\": \\"correct horse\\"}', "correct horse"),
    ("--password 'x' pwd=Tr0ub4dor&3", "Tr0ub4dor&3"),
    ("Пароль: Qwerty123", "Qwerty123"),
    ("пароль от вайфая: kotik123", "kotik123"),
    ("Мой пароль — Зима2026!", "Зима2026!"),
    ("密码是abc12345", "abc12345"),
    ("密码：abc12345", "abc12345"),
    ("パスワード: tokyo2026", "tokyo2026"),
    ("كلمة المرور: qahira77", "qahira77"),
    ("passwort: geheim!1", "geheim!1"),
    ("api_key = 'a1b2c3d4e5f6g7h8'", "a1b2c3d4e5f6g7h8"),
    ("X-Api-Key: a1b2c3d4e5f6g7h8", "a1b2c3d4e5f6g7h8"),
    ("client_secret: a1b2c3d4e5f6g7h8", "a1b2c3d4e5f6g7h8"),
    ("aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("Authorization: Bearer abcdef0123456789abcd", "abcdef0123456789abcd"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("postgresql://app:s3cr3t@db:5432/x", "s3cr3t"),
    ("redis://:s3cr3t@cache/0", "s3cr3t"),
    ("mongodb+srv://u:p%40ss@cluster.example.net/x", "p%40ss"),
    ("https://x.example/f?sig=Zm9vYmFyMTIzNDU2&b=1", "Zm9vYmFyMTIzNDU2"),
    ("Server=db;User Id=sa;Password=Pa55w.rd;Encrypt=yes", "Pa55w.rd"),
    ("AccountKey=" + ALNUM + ALNUM[:24] + "==", ALNUM),
    ("PIN: 4821", "4821"),
    ("пин-код: 4821", "4821"),
    ("CVV is 123", "123"),
    ("card 4111 1111 1111 1111, thanks", "4111 1111 1111 1111"),
    ("карта 5555-5555-5555-4444", "5555-5555-5555-4444"),
    ("amex 378282246310005", "378282246310005"),
    (
        "seed phrase: abandon ability able about above absent absorb abstract absurd abuse access zoo",
        "ability able about",
    ),
]
INNOCENT = [
    "My password is gone",
    "Password is case-sensitive",
    "my password is not working",
    "the password was reset on 2026-11-20",
    "password set to expire",
    "пароль на 12 символов",
    "пароль обязателен",
    "мой пароль устарел",
    "hash the password with SHA256 or bcrypt",
    "密码必须包含8个字符",
    "token count is 4096",
    "connect pin 13 to GND",
    "pass rate: 98.5%",
    "compass: 45deg, bypass=true",
    "boarding pass A12B34",
    "password=ssl_password, user=user",
    "password = encoder.encode(text)",
    "the mysql client -port",
    "curl -u admin https://x.example",
    "session=none; theme=dark",
    "IMEI 490154203237518",
    "550e8400-e29b-41d4-a716-446655440000",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 fixes it",
    "sha256:" + HEX,
    "order 4929 1234 5678 9013 is late",
    "order #4111111111111111",
    "tracking 1Z999AA10123456784",
    "call +49 30 901820 or +1 (415) 555-2671",
    "phone 8 800 555 35 35",
    "IBAN DE89 3704 0044 0532 0130 00",
    "Donaudampfschifffahrtsgesellschaftskapitaen",
    "превысокомногорассмотрительствующий",
    "the password is wrong",
    "I forgot my password, is there a way to reset it?",
    "The password must be at least 12 characters",
    "пароль: не меньше 8 символов",
    "пароль неверный",
    "密码：我忘记了",
    "password: str = Field(min_length=8)",
    "password = os.environ['DB_PASSWORD']",
    "password=${DB_PASSWORD}",
    "password: <your password>",
    "password: None",
    "token: the smallest unit of text",
    "max_tokens: 4096",
    "tokens: 1200, secret sauce: butter",
    "the secret is patience",
    "a bearer of responsibilities and traditions",
    "sk-learn is short for scikit-learn-contrib-packages",
    "task-force-one-two-three-four-five",
    "https://example.org:8080/path?x=foo@bar.com",
    "mail anna@example.org at 10:30",
    "git@github.com:owner/name.git",
    "version 1.2.3-rc.4+build.5678",
    "2026-11-20T08:16:43.123456789Z",
    "1732090603000000000 ns",
    "pin it to the board",
    "pinned: 3 messages",
    "x = -----BEGIN CERTIFICATE-----",
    "the eyJ prefix marks a token",
    "[REDACTED:password]",
]


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("around", SURROUNDINGS)
def test_a_key_goes_wherever_it_stands(kind: str, around: str) -> None:
    text = around.replace("{}", KEYS[kind])
    redacted = redact(text)
    assert KEYS[kind] not in redacted
    assert KEYS[kind][10:30] not in redacted
    marks = around.replace("{}", f"[REDACTED:{kind}]")
    assert redacted == marks or "[REDACTED:secret]" in redacted


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_a_value_that_is_named_goes(text: str, secret: str) -> None:
    redacted = redact(text)
    assert secret not in redacted
    assert "[REDACTED:" in redacted
    assert redact(redacted) == redacted


def test_what_surrounds_a_secret_stays() -> None:
    text = "Connect to postgresql://app:s3cr3t@db.example.org:5432/shop as app; PIN: 4821, then call Anna."
    assert redact(text) == (
        "Connect to postgresql://app:[REDACTED:password]@db.example.org:5432/shop as app; PIN: [REDACTED:pin], then"
        " call Anna."
    )


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text
    assert redact(f"We noted: {text}\nand went on.") == f"We noted: {text}\nand went on."


def test_control_a_number_with_the_check_sum_of_a_card_goes() -> None:
    redacted = [number for number in range(10) if redact(f"4929 1234 5678 901{number}") == "[REDACTED:card]"]
    assert len(redacted) == 1


def test_a_private_key_without_an_end_goes_as_far_as_it_looks_like_one() -> None:
    cut_off = KEYS["private_key"].partition("-----END")[0]
    assert redact(f"{cut_off}This sentence stays.") == "[REDACTED:private_key]\nThis sentence stays."


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


@pytest.mark.parametrize("kind", [kind for kind in KEYS if kind != "private_key"])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_a_secret_split_over_parts_goes_from_both(kind: str, share: float) -> None:
    secret = KEYS[kind]
    cut = int(len(secret) * share)
    parts = [{"type": "text", "text": f"first {secret[:cut]}"}, {"type": "text", "text": f"{secret[cut:]} last"}]
    redacted = redact_message(message(1, "", parts=parts))
    assert "".join(part["text"] for part in redacted.parts) == f"first [REDACTED:{kind}] last"


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


pieces = st.one_of(
    st.sampled_from(
        [*KEYS.values(), *(text for text, _ in NAMED), "password", "=", ": ", '"', "://", "@", "\n", "[REDACTED:", "]"]
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
    "-----BEGIN PRIVATE KEY-----" + "A" * 400_000,
    "password" * 50_000,
    "password: " * 40_000,
    'password="' * 40_000,
    "password for " * 30_000,
    "sk-" * 130_000,
    "://a:" * 80_000,
    "1" * 400_000,
    "4111 " * 80_000,
    "seed phrase: " + "able " * 80_000,
    "bearer " * 60_000,
    "?sig=" * 80_000,
    "\\n" * 200_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_hostile_input_takes_linear_time(text: str) -> None:
    def seconds(piece: str) -> float:
        started = time.process_time()
        redact(piece)
        return time.process_time() - started

    half, whole = seconds(text[: len(text) // 2]), seconds(text)
    assert whole < 5
    assert whole < 4 * half + 0.3, "twice the text may take twice the time, and some for the noise"
