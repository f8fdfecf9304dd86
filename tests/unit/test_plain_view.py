"""Every place of a text in plain characters leads back to a place of its original."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from app.core.text.plain_view import plain_view
from tests.rows import each

SEEN = {
    "p\u0430ssword": "password",
    "\u043fapo\u043b\u044c": "\u043f\u0430\u0440\u043e\u043b\u044c",
    "pass\u200bwo\u00adrd": "password",
    "\uff30\uff29\uff2e\uff1a\uff11\uff12": "PIN:12",
    "4111\u00a01111\u20111111": "4111 1111-1111",
    "\U0001d5bd\U0001d5be": "de",
    "\u0661\u0662": "12",
    "pe\u0301a\u0336\u0301 \u0438\u0306 \u0301": "p\u00e9\u00e1 \u0439 ",
    "\u30cf\u309a \u1107\u1175": "\u30d1 \ube44",
    "&quot;a&quot; &amp;&nbsp;b&x;": '"a" & b&x;',
    '"\\u043f\\u0430\\u0440" \\\\u201cx\\u00a0\\u0022 \\user': '"\u043f\u0430\u0440" \u201cx \\" \\user',
    "a\\u003db\\x26c \\xc3\\u000a": "a=b&c \\xc3\\n",
    "&#61;&#x2F;&#8203;a&#01;&#x1F600;&#a;": "=/a\U0001f600&#a;",
    "https:\\/\\/a\\\\/b /\\": "https://a/b /\\",
    "\x1b(B\x1b[ma\\e(0b\x1b[38:2::255:0:0mc\x1b[38;2;255;255;255;48;2;100;100;100md\x1b[200~e\x1b(": "abcde(",
    "\x1b[1;31ma\x1b[m\\u001b[Kb\\033[0mc\x1bd \\e e": "abcd \\e e",
    "a\U000e0100b\u2065c\ufffad\ufe20e\u0487f\x7fg": "abcdefg",
    "VK \u0438 \u0421\u0431\u0435\u0440": "VK \u0438 \u0421\u0431\u0435\u0440",
    "\u043f\u0430\u0440\u043e\u043b\u044c \u2014 \u00fcber": "\u043f\u0430\u0440\u043e\u043b\u044c \u2014 \u00fcber",
}


@each(("text", "seen"), SEEN.items())
def test_a_text_is_seen_in_plain_signs(text: str, seen: str) -> None:
    assert plain_view(text).text == seen


odd = st.sampled_from([*SEEN, "\u200b", "\ufeff", " ", "a", "&quot;", "\u0434"])


@example("\u043fa\u043fo\u043b\u044ca\u200b")
@example("\u043fapo\u043b\u044cpe\u0301")
@given(st.lists(odd | st.text(max_size=3), max_size=12).map("".join))
def test_every_place_leads_back_to_the_sign_that_it_was(text: str) -> None:
    view = plain_view(text)
    places = [view.original(place) for place in range(len(view.text) + 1)]
    assert places == sorted(set(places))
    assert places[-1] == len(text)
    for place, sign in enumerate(view.text):
        piece = text[places[place] : places[place + 1]]
        letter = unicodedata.normalize("NFC", piece)[:1]
        if view.text[:place].endswith("\\"):
            continue  # the rest of an escaped sign that keeps its backslash
        assert plain_view(piece).text in {sign, piece[:1], letter}  # alone, a letter may be of the other alphabet
