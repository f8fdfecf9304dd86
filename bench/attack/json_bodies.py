"""Part 3: hostile JSON in the families of JSONTestSuite (our own texts), and lies about a body's length and encoding.

Text that is not JSON (``no``) must be refused with a 4xx of the service. Text that is JSON (``yes``) must be kept as it
was given. Where parsers may choose (``may``), anything but a 5xx is right. Lies about a body go over a raw socket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import httpx

from bench.attack.findings import Outcome
from bench.attack.hostile import conversation
from bench.attack.sockets import Raw
from bench.attack.target import Target

NAME: Final = "json"
JSON: Final = "application/json"
MUST = Literal["yes", "no", "may"]
CREATED: Final = 201
REFUSED: Final = range(400, 500)
BAD: Final = 500
DEEP: Final = 100_000

VALUES: Final[dict[MUST, tuple[str, ...]]] = {
    "yes": (
        "[]",
        "{}",
        "[[]   ]",
        '[""]',
        "[0e+1]",
        "[1E22]",
        "[-0]",
        "[-0.0]",
        "[0.1e-2]",
        "[123.456e-3]",
        "[true,false,null]",
        '["\\u0060\\u012a\\u12AB"]',
        '["\\uD801\\udc37"]',
        '["\\"\\\\\\/\\b\\f\\n\\r\\t"]',
        '["\\uDBFF\\uDFFF"]',
        '["\\u2028\\u2029"]',
        '["\u007f"]',
        '["€𝄞"]',
        '{"":0}',
        '{"a":{"a":{"a":1}}}',
        "\t[\n1\r\n, 2 ]\n",
        '"x"',
        "[9007199254740993]",
        "[9223372036854775807]",
        '["\\u005C\\u0022"]',
        '{"\\u0061":1}',
        "[1e-5]",
        "[" * 50 + "]" * 50,
        '["\\uFEFF"]',
        '["\ufffe"]',
    ),
    "no": (
        "[1 true]",
        "[a]",
        '["": 1]',
        '[""],',
        "[,1]",
        "[1,,2]",
        "[1,]",
        "[,]",
        "[",
        "[1",
        '["a',
        "[++1]",
        "[+1]",
        "[01]",
        "[-01]",
        "[1.]",
        "[.5]",
        "[-.5]",
        "[1e]",
        "[1e+]",
        "[0x1F]",
        "[1_000]",
        "[1 000]",
        "[NaN]",
        "[Infinity]",
        "[-Infinity]",
        "[-NaN]",
        "[nul]",
        "[TRUE]",
        '["\\x00"]',
        '["\\u00A"]',
        '["\\a"]',
        '["\\"]',
        '["\t"]',
        '["\n"]',
        "['x']",
        "{'a':1}",
        "{a:1}",
        '{"a":}',
        '{"a" 1}',
        '{"a":1,}',
        '{"a":1,,}',
        "{1:1}",
        '{"a":1 "b":2}',
        "{",
        '{"a"',
        '{"a":',
        "}",
        "]",
        "[1]]",
        "[1}",
        '{"a":1]',
        "[/*c*/1]",
        "[1]//",
        "#",
        "",
        " ",
        "<json/>",
        "[1]x",
        '"',
        "'",
        "nullx",
        "[\u00a01]",
        "[１]",
        "[\f1]",
        '["a"b]',
        "undefined",
        "[1 ,2, ...]",
        "{[]:1}",
        '["\\uD8"]',
        '["\\u{61}"]',
        "[1e1.5]",
        "[0.3e]",
        "[--1]",
        "[- 1]",
        "[2.e3]",
        '{"a":"b"}#',
        "\u2060[1]",
        "&[1]",
        "*",
        "[" * DEEP,
        "[" * DEEP + "]" * DEEP,
        '{"a":' * 70 + "1" + "}" * 70,
        "[1][2]",
        "[True]",
        "[None]",
        '["\x01"]',
        '["\x1f"]',
        "\x00",
        "[\x001]",
    ),
    "may": (
        "[1e9999]",
        "[-1e9999]",
        "[0.4e00669999999999999999]",
        "[100000000000000000000]",
        "[-123123123123123123123123]",
        "[1e-9999]",
        '["\\uD800"]',
        '["\\uDC00\\uD800"]',
        '["\\uD834x"]',
        '{"\\uDFAA":0}',
        '["\\u0000"]',
        '{"\\u0000":1}',
        '{"a":1,"a":2}',
        '{"a":1,"\\u0061":2}',
        "[0." + "1" * 5_000 + "]",
        "[" + "9" * 5_000 + "]",
        '{"__proto__":{"a":1}}',
        '{"constructor":1}',
        "[1e400]",
        '{"' + "k" * 5_000 + '":1}',
    ),
}
"""Values by family; each is put into a field that takes any value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A whole body."""

    name: str
    content: bytes
    must: MUST = "no"
    headers: tuple[tuple[str, str], ...] = (("Content-Type", JSON),)


GOOD: Final = b'{"role":"user","content":"Hello."}'
BODIES: Final = (
    Body(name="good", content=GOOD, must="yes"),
    Body(name="blanks around", content=b" \r\n\t" + GOOD + b"\n ", must="yes"),
    Body(
        name="type with a parameter",
        content=GOOD,
        must="yes",
        headers=(("Content-Type", "application/json; charset=UTF-8"),),
    ),
    Body(
        name="a type that is JSON too", content=GOOD, must="yes", headers=(("Content-Type", "application/vnd.x+json"),)
    ),
    Body(name="BOM", content=b"\xef\xbb\xbf" + GOOD),
    Body(name="UTF-16", content=GOOD.decode().encode("utf-16")),
    Body(name="UTF-16 without BOM", content=GOOD.decode().encode("utf-16-le")),
    Body(name="UTF-32", content=GOOD.decode().encode("utf-32")),
    Body(name="Latin-1", content='{"role":"user","content":"é"}'.encode("latin-1")),
    Body(name="overlong", content=b'{"role":"user","content":"\xc0\xaf"}'),
    Body(name="surrogate in UTF-8", content=b'{"role":"user","content":"\xed\xa0\x80"}'),
    Body(name="half a sign", content=b'{"role":"user","content":"\xf0\x9f"}'),
    Body(name="lonely continuation", content=b'{"role":"user","content":"\x80"}'),
    Body(name="beyond Unicode", content=b'{"role":"user","content":"\xf4\x90\x80\x80"}'),
    Body(name="truncated", content=GOOD[:-1]),
    Body(name="truncated in a text", content=GOOD[:20]),
    Body(name="two documents", content=GOOD + GOOD),
    Body(name="an array", content=b"[" + GOOD + b"]"),
    Body(name="a text", content=b'"Hello."'),
    Body(name="null", content=b"null"),
    Body(name="empty", content=b""),
    Body(name="form", content=b"role=user&content=x", headers=(("Content-Type", "application/x-www-form-urlencoded"),)),
    Body(name="text/plain", content=GOOD, headers=(("Content-Type", "text/plain"),)),
    Body(name="no type", content=GOOD, headers=()),
    Body(name="two types", content=GOOD, headers=(("Content-Type", "text/plain"), ("Content-Type", JSON)), must="may"),
    Body(name="multipart", content=GOOD, headers=(("Content-Type", "multipart/form-data; boundary=x"),)),
    Body(name="another charset", content=GOOD, headers=(("Content-Type", "application/json; charset=utf-16"),)),
    Body(name="unknown charset", content=GOOD, headers=(("Content-Type", "application/json; charset=klingon"),)),
    Body(name="strange type", content=GOOD, headers=(("Content-Type", "application/json;;;=;\x7f"),), must="may"),
    Body(name="gzip claimed", content=GOOD, headers=(("Content-Type", JSON), ("Content-Encoding", "gzip"))),
    Body(name="many values", content=b'{"role":"user","content":"x","metadata":{"v":[' + b"0," * 250_000 + b"0]}}"),
    Body(name="many keys", content=b'{"metadata":{' + b",".join(b'"%d":0' % n for n in range(250_000)) + b"}}"),
    Body(name="too large", content=b'{"role":"user","content":"' + b"x" * 9_000_000 + b'"}'),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """What a request's head says about its body."""

    name: str
    head: tuple[str, ...]
    body: bytes
    must: Literal["accept", "refuse", "either"]


SMUGGLED: Final = b"DELETE /conversations/x HTTP/1.1\r\nHost: t\r\n\r\n"
FRAMINGS: Final = (
    Framing(
        name="chunked",
        head=("Transfer-Encoding: chunked",),
        body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD),
        must="accept",
    ),
    Framing(
        name="chunked byte by byte",
        head=("Transfer-Encoding: chunked",),
        body=b"".join(b"1\r\n%c\r\n" % byte for byte in GOOD) + b"0\r\n\r\n",
        must="accept",
    ),
    Framing(
        name="a chunk that lies",
        head=("Transfer-Encoding: chunked",),
        body=b"5\r\n" + GOOD + b"\r\n0\r\n\r\n",
        must="refuse",
    ),
    Framing(
        name="a chunk without a size", head=("Transfer-Encoding: chunked",), body=b"zz\r\nx\r\n0\r\n\r\n", must="refuse"
    ),
    Framing(name="a huge chunk", head=("Transfer-Encoding: chunked",), body=b"fffffffffffffffff\r\nx", must="refuse"),
    Framing(name="another coding", head=("Transfer-Encoding: gzip, chunked",), body=b"0\r\n\r\n", must="refuse"),
    Framing(name="no number", head=("Content-Length: x",), body=GOOD, must="refuse"),
    Framing(name="negative", head=("Content-Length: -1",), body=GOOD, must="refuse"),
    Framing(name="a sign", head=(f"Content-Length: +{len(GOOD)}",), body=GOOD, must="refuse"),
    Framing(name="two lengths", head=(f"Content-Length: {len(GOOD)}", "Content-Length: 5"), body=GOOD, must="refuse"),
    Framing(name="too short", head=("Content-Length: 5",), body=GOOD, must="refuse"),
    Framing(name="huge length", head=("Content-Length: 99999999999999999999",), body=GOOD, must="refuse"),
    Framing(
        name="length and chunks",
        head=(f"Content-Length: {len(GOOD) + len(SMUGGLED)}", "Transfer-Encoding: chunked"),
        body=b"0\r\n\r\n" + SMUGGLED,
        must="refuse",
    ),
    Framing(name="a folded header", head=("X-Long: a", " b", f"Content-Length: {len(GOOD)}"), body=GOOD, must="either"),
    Framing(name="a blank before the colon", head=(f"Content-Length : {len(GOOD)}",), body=GOOD, must="refuse"),
    Framing(name="a large head", head=("X-Long: " + "a" * 200_000,), body=b"", must="refuse"),
    Framing(name="many headers", head=tuple(f"X-{n}: a" for n in range(5_000)), body=b"", must="refuse"),
    Framing(name="NUL in a header", head=("X-Nul: a\0b", f"Content-Length: {len(GOOD)}"), body=GOOD, must="refuse"),
)


def attack(target: Target, seed: int, examples: int) -> Outcome:  # noqa: ARG001 - every value is tried, whatever is drawn
    """Try every value, every body and every framing."""
    outcome = Outcome(NAME)
    with target.client("writer") as http:
        ids = conversation(http)
        path = f"/conversations/{ids['conversation_id']}/messages"
        for must, value in values():
            _value(http, path, must, value, outcome)
        for body in BODIES:
            _body(http, path, body, outcome)
        for framing in FRAMINGS:
            _framing(target, path, framing, outcome)
        outcome.expect(http.get("/healthz").is_success, "/healthz does not answer", "afterwards")
    return outcome


def values() -> Iterator[tuple[MUST, str]]:
    """All values, each with what must become of it."""
    for must, texts in VALUES.items():
        for text in texts:
            yield must, text


def _value(http: httpx.Client, path: str, must: MUST, value: str, outcome: Outcome) -> None:
    content = b'{"role":"user","content":"x","metadata":{"v":' + value.encode() + b"}}"
    response = http.post(path, content=content, headers={"Content-Type": JSON})
    what = f"{value[:60]!r} → {response.status_code} {response.text[:200]}"
    _judge(must, response, f"metadata.v, {must}", what, outcome)
    if must == "yes" and response.status_code == CREATED:
        stored = response.json()["metadata"]["v"]
        outcome.expect(_same(stored, json.loads(value)), "not kept as it was given", "metadata.v", what)


def _same(stored: Any, given: Any) -> bool:
    """Whether two values are equal as JSON: Postgres keeps ``-0.0`` and ``1E22`` as numbers, not as spelt."""
    return bool(stored == given)


def _body(http: httpx.Client, path: str, body: Body, outcome: Outcome) -> None:
    request = http.build_request("POST", path, content=body.content)
    request.headers = httpx.Headers(
        [*((n, v) for n, v in request.headers.items() if n != "content-type"), *body.headers]
    )
    response = http.send(request)
    _judge(body.must, response, body.name, f"{response.status_code} {response.text[:200]}", outcome)


def _judge(must: MUST, response: httpx.Response, where: str, what: str, outcome: Outcome) -> None:
    outcome.counts[f"{must}: answered {response.status_code // 100}xx"] += 1
    outcome.expect(response.status_code < BAD, "a 5xx", where, what)
    if must == "yes":
        outcome.expect(response.status_code == CREATED, "JSON is refused", where, what)
    if must == "no":
        outcome.expect(response.status_code in REFUSED, "no JSON is accepted", where, what)
    if response.status_code in REFUSED:
        is_ours = response.headers.get("content-type") == "application/problem+json" and response.json().get("code")
        outcome.expect(is_ours, "a refusal in no form of ours", where, what)


def _framing(target: Target, path: str, framing: Framing, outcome: Outcome) -> None:
    """Check that there is one answer at most, and none to what follows the body."""
    key = target.headers("writer")["Authorization"]
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: {key}", f"Content-Type: {JSON}", *framing.head]
    with Raw(target.url) as raw:
        raw.send("\r\n".join(head).encode() + b"\r\n\r\n" + framing.body)
        answer = raw.read_until_quiet(2.0)
    status = int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0
    where, what = f"on the wire: {framing.name}", f"{answer[:300]!r}"
    outcome.counts[f"framings answered {status // 100}xx" if status else "framings cut off"] += 1
    outcome.expect(status < BAD, "a 5xx", where, what)
    if framing.must == "accept":
        outcome.expect(status == CREATED, "a good body is refused", where, what)
    if framing.must == "refuse":
        outcome.expect(status == 0 or status in REFUSED, "a lie is accepted", where, what)
    outcome.expect(answer.count(b"HTTP/1.1 2") <= 1 and b" 204 " not in answer, "a smuggled request", where, what)
