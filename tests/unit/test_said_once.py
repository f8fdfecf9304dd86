"""A tool's result that is both in its message's content and in a part is counted and shown once, wherever it goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import UserPromptPart

from app.core.context.formats import Format, in_format
from app.core.context.recalled_messages import as_sent
from app.core.model.conversation import Message
from app.core.model.export import markdown_message
from app.core.model.model_io import ContextMessage
from app.core.model.redaction import redact_message
from app.core.model.word_overlap import message_text
from app.core.reading.passages import passages_of
from app.core.retrieval.corpus import Source
from app.core.retrieval.passage_search import notes_of
from app.core.retrieval.ranking import RecalledMessage
from app.core.retrieval.rendering import recalled_element, with_elements_before
from app.core.summarizer.framing import frame_messages
from app.core.text.parts import Part, own_content, own_parts
from app.core.text.token_counts import weigh
from app.providers.messages import to_provider
from tests.builders import material, message, policy_of
from tests.unframing import unframe
from tests.unit.test_assembly import put_together
from tests.unit.timing import assert_linear, assert_linear_in

WORD: Final = "quokka"
"""A word that occurs once in the tool's result."""
TEXT: Final = f"The {WORD} sleeps until nine in the evening, says the keeper."
VALUE: Final = {"animal": WORD, "awake": ["evening", "night"], "visitors": 12}
OTHER: Final = "The keeper was on leave that day, so the tool asked his deputy."
FORMATS: Final = get_args(Format)

REPEATED: Final = [
    pytest.param(TEXT, TEXT, id="text"),
    pytest.param(f"\n{TEXT} ", TEXT, id="blanks around it"),
    pytest.param(json.dumps(VALUE), VALUE, id="JSON"),
    pytest.param(json.dumps(VALUE, indent=2, sort_keys=True), VALUE, id="JSON in another shape"),
    pytest.param(json.dumps(VALUE, indent=2), json.dumps(VALUE, sort_keys=True), id="JSON as text in another shape"),
    pytest.param(json.dumps([VALUE]), [VALUE], id="a list"),
]
TOLD: Final = [
    pytest.param(json.dumps(VALUE), json.dumps(VALUE | {"visitors": 13}), id="another value as text"),
    pytest.param(OTHER, TEXT, id="other words"),
    pytest.param(f"{TEXT} {OTHER}", TEXT, id="more than the result"),
    pytest.param(json.dumps(VALUE | {"visitors": 13}), VALUE, id="another value"),
    pytest.param('{"visitors": true}', {"visitors": 1}, id="true is no 1"),
    pytest.param("{broken", VALUE, id="no JSON"),
    pytest.param("[" * 100_000, [VALUE], id="JSON too deep to read"),
]


def result(value: Any, call: str = "c1") -> Part:
    return {"type": "tool_result", "tool_call_id": call, "name": "zoo", "content": value}


def brought(content: str, *values: Any) -> Message:
    return message(3, content, "tool", parts=[result(value) for value in values])


def context(content: str, value: Any) -> list[ContextMessage]:
    call: Part = {"type": "tool_call", "id": "c1", "name": "zoo", "arguments": {"of": "day"}}
    stored = [message(1, "When?"), message(2, "", parts=[call]), brought(content, value)]
    return [as_sent(one) for one in stored]


def bare(content: str, value: Any) -> list[ContextMessage]:
    """The messages as a caller may give them, with nothing removed."""
    *before, last = context(content, value)
    return [*before, ContextMessage(role="tool", content=content, parts=last.parts, seq=3)]


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


@pytest.mark.parametrize(("content", "value"), REPEATED)
def test_a_content_that_repeats_a_result_is_not_its_own(content: str, value: Any) -> None:
    assert own_content("tool", content, (result(value),)) == ""
    assert own_content("tool", content, (result("before"), result(value))) == "", "one of several results"
    assert own_content("user", content, (result(value),)) == content, "what a user says is theirs"
    assert own_parts(content, (result(value),)) == []
    assert own_parts("", (result(value),)) == [result(value)]


@pytest.mark.parametrize(("content", "value"), TOLD)
def test_a_content_that_says_anything_else_is_its_own(content: str, value: Any) -> None:
    assert own_content("tool", content, (result(value),)) == content
    assert own_parts(content, (result(value),)) == [result(value)]


@pytest.mark.parametrize("value", ["", None, {}, [], 0])
def test_an_empty_content_repeats_nothing(value: Any) -> None:
    assert own_content("tool", " ", (result(value),)) == " "
    assert own_parts("", (result(value),)) == [result(value)]


def test_a_text_part_that_stands_in_the_content_is_no_part_of_its_own() -> None:
    twice, other = {"type": "text", "text": TEXT}, {"type": "text", "text": OTHER}

    assert own_parts(f"{TEXT} Really.", (twice, other)) == [other]
    assert message_text(message(1, TEXT, parts=[twice, other])) == f"{TEXT}\n{OTHER}"


@pytest.mark.parametrize(("content", "text", "is_own"), [
    ("Blueberries, please.", "Blue", True),
    ("Take the 130 bus.", "13", True),
    ("Blueberries or blue?", "blue", False),
    ("Blue\nand green", "Blue", False),
    ("- one", "- one", False),
    ("今天很好。", "今天很好。", False),
    ("", "", False),
    (f"{'A bubble. ' * 60}\n\nb\n\nAnd?", "b", False),
    (f"{'A bubble. ' * 60}\n\nbb", "b", True),
])  # fmt: skip
def test_a_text_part_stands_in_the_content_only_in_words_of_its_own(content: str, text: str, *, is_own: bool) -> None:
    part = {"type": "text", "text": text}
    assert own_parts(content, (part,)) == ([part] if is_own else [])


@pytest.mark.parametrize("text", ["ab" * 500, "a"])
def test_a_text_is_looked_for_in_linear_time(text: str) -> None:
    part = {"type": "text", "text": text}
    assert_linear(lambda content: own_parts(content, (part,)), f"x{text * (100_000 // len(text))}x")


VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_whatever_the_value_its_json_repeats_it(value: Any) -> None:
    content = value if isinstance(value, str) else json.dumps(value, indent=1)

    assert own_content("tool", content, (result(value),)) == ("" if content.strip() else content)


@given(VALUES, VALUES)
def test_two_values_are_not_taken_for_one(one: Any, other: Any) -> None:
    content = json.dumps(one)
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    if not same and not isinstance(other, str):
        assert own_content("tool", content, (result(other),)) == content


@pytest.mark.parametrize(("content", "value"), REPEATED)
def test_it_weighs_as_much_as_its_result_alone(content: str, value: Any) -> None:
    assert weigh("tool", content, (result(value),)) == weigh("tool", "", (result(value),))


@pytest.mark.parametrize(("content", "value"), TOLD[:4])
def test_what_is_said_beside_a_result_weighs_as_well(content: str, value: Any) -> None:
    more = weigh("tool", content, (result(value),)).bytes - weigh("tool", "", (result(value),)).bytes

    assert more == len(content.encode())


def text_part(text: str, **further: Any) -> Part:
    return {"type": "text", "text": text, **further}


@pytest.mark.parametrize("part", [text_part("a"), result({}), result("{}")], ids=["text", "value", "JSON"])
def test_many_parts_are_looked_for_in_linear_time(part: Part) -> None:
    def looking(size: int) -> Callable[[], object]:
        parts, values = (part,) * size, {str(number): number for number in range(8 * size)}
        content = json.dumps(values) if part["type"] == "tool_result" else "a" * 60 * size
        return lambda: (own_parts(content, parts), own_content("tool", content, parts))

    assert_linear_in(looking, 256)


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_text_part_that_repeats_the_content_weighs_nothing(role: str) -> None:
    assert weigh(role, f"{TEXT} Really.", (text_part(TEXT),)) == weigh(role, f"{TEXT} Really.")
    control = weigh(role, TEXT, (text_part(OTHER),)).tokens - weigh(role, TEXT).tokens
    assert control == weigh(role, "", (text_part(OTHER),)).tokens - weigh(role, "").tokens > 0


def test_what_such_a_part_has_beside_its_text_weighs_as_it_did() -> None:
    heavy = text_part(TEXT, note="y" * 10_000)

    assert weigh("user", TEXT, (heavy,)).tokens > weigh("user", TEXT).tokens + 1_900
    assert as_sent(message(1, TEXT, parts=[heavy])).parts == (heavy,)


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_and_the_chat_model_have_such_a_text_once(format_: Format) -> None:
    sent = [as_sent(message(1, TEXT, parts=[text_part(TEXT), text_part(OTHER)]))]

    shown = as_json(in_format(sent, format_).messages)
    assert (shown.count(TEXT), shown.count(OTHER)) == (1, 1)
    prompt = str(to_provider(sent, lambda _: False))
    assert (prompt.count(TEXT), prompt.count(OTHER)) == (1, 1)


def test_a_text_part_stays_where_only_what_was_recalled_says_the_same() -> None:
    source = Source(1, "assistant", TEXT, datetime(2026, 11, 1, tzinfo=UTC), 1)
    recalled = recalled_element([RecalledMessage(source=source, score=0, reasons={})])
    asked = ContextMessage(
        role="user",
        content=with_elements_before(recalled, "", "And this?"),
        parts=(text_part(TEXT), text_part("And")),
        seq=3,
    )

    for shown in (as_json(in_format([asked], "openai").messages), str(to_provider([asked], lambda _: False))):
        assert shown.count(TEXT) == len(("recalled", "said"))
        assert shown.count("And") == 1, "the control: what the content says itself is not told again"


@pytest.mark.parametrize("order", ["tmtm", "mttm", "mt", "tmm"])
def test_texts_between_pictures_stand_where_they_were_given(order: str) -> None:
    """Clients of OpenAI's API label pictures: their texts are joined as the content, and are parts as well."""
    picture: Part = {"type": "media", "media_type": "image/png", "data": "AAAA"}
    texts = [f"Label {number}:" for number in range(order.count("t"))]
    content, left = "\n\n".join(texts), iter(texts)
    stored = message(1, content, parts=[text_part(next(left)) if kind == "t" else picture for kind in order])
    assert weigh("user", content, stored.parts) == weigh("user", content, [picture] * order.count("m"))

    (request,) = to_provider([as_sent(stored)], lambda _: True)
    (asked,) = request.parts
    assert isinstance(asked, UserPromptPart)
    (turn,) = in_format([as_sent(stored)], "gemini").messages
    for shown in (asked.content, [part.get("text", part) for part in turn["parts"]]):
        assert [piece for piece in shown if isinstance(piece, str)] == texts
        assert "".join("t" if isinstance(piece, str) else "m" for piece in shown) == order

    (plain,) = in_format([as_sent(stored)], "plain").messages
    assert (plain["content"], plain["parts"]) == (content, [picture] * order.count("m")), "each once"

    (named,) = to_provider([replace(as_sent(stored), name="Anna")], lambda _: True)
    (said,) = named.parts
    assert isinstance(said, UserPromptPart)
    assert " ".join(piece for piece in said.content if isinstance(piece, str)) == " ".join(["Anna:", *texts])


@pytest.mark.parametrize(("texts", "sent"), [(["\n"], []), (["A", " "], ["A"]), ([" ", "B"], ["B"])])
def test_a_text_without_words_beside_a_picture_is_not_sent(texts: list[str], sent: list[str]) -> None:
    """Anthropic refuses a request with one, and the message would be sent with each turn."""
    picture: Part = {"type": "media", "media_type": "image/png", "data": "AAAA"}
    parts = [part for text in texts for part in (picture, text_part(text))]
    (request,) = to_provider([as_sent(message(1, "\n\n".join(texts), parts=parts))], lambda _: True)
    (prompt,) = request.parts
    assert isinstance(prompt, UserPromptPart)
    assert [piece for piece in prompt.content if isinstance(piece, str)] == sent
    assert len(prompt.content) == len(texts) + len(sent)


def test_a_giant_text_that_is_given_twice_keeps_its_two_ends_once() -> None:
    policy = policy_of(context_window=4_000, on_failure="keep_full", oversized="elide")
    giant = f"BEGIN {'word ' * 9_000}END"
    found = put_together(material([message(1, giant, parts=[text_part(giant), text_part("also this")])], policy=policy))

    (sent,) = [one for one in found.messages if one.seq == 1]
    assert (sent.content[:5], sent.content[-3:]) == ("BEGIN", "END")
    assert sent.parts == (text_part("also this"),)


@pytest.mark.parametrize(("content", "value"), REPEATED)
def test_the_summarizer_reads_it_once(content: str, value: Any) -> None:
    prompt = frame_messages([brought(content, value)])
    (found,) = unframe(prompt)

    assert prompt.count(WORD) == 1
    assert (found.content, [kind for kind, _ in found.parts]) == ("", ["tool_result"])


@pytest.mark.parametrize(("content", "value"), TOLD[:4])
def test_the_summarizer_reads_what_is_said_beside_it(content: str, value: Any) -> None:
    (found,) = unframe(frame_messages([brought(content, value)]))

    assert (found.content, [kind for kind, _ in found.parts]) == (content, ["tool_result"])


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("given_as", [context, bare])
@pytest.mark.parametrize(("content", "value"), REPEATED)
def test_every_format_shows_it_once(content: str, value: Any, given_as: Any, format_: Format) -> None:
    assert as_json(in_format(given_as(content, value), format_).messages).count(WORD) == 1
    orphan = given_as(content, value)[2:]
    assert as_json(in_format(orphan, format_).messages).count(WORD) == 1, "also without its call"


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("value", [TEXT, VALUE])
def test_every_format_shows_what_is_said_beside_it(value: Any, format_: Format) -> None:
    for sent in (context(OTHER, value), context(OTHER, value)[2:]):
        shown = as_json(in_format(sent, format_).messages)
        assert (shown.count(OTHER), shown.count(WORD)) == (1, 1)


@pytest.mark.parametrize("given_as", [context, bare])
@pytest.mark.parametrize(("content", "value"), REPEATED)
def test_the_chat_model_is_sent_it_once(content: str, value: Any, given_as: Any) -> None:
    for sent in (given_as(content, value), given_as(content, value)[2:]):
        assert str(to_provider(sent, lambda _: False)).count(WORD) == 1


def test_the_chat_model_is_sent_what_is_said_beside_it_once() -> None:
    calls: list[Part] = [{"type": "tool_call", "id": id_, "name": "zoo", "arguments": {}} for id_ in ("c1", "c2")]
    results = (result(TEXT, "c1"), result("closed", "c2"))
    talk = [
        ContextMessage(role="assistant", content="", parts=tuple(calls)),
        ContextMessage(role="tool", content=OTHER, parts=results),
    ]

    shown = str(to_provider(talk, lambda _: False))
    assert [shown.count(text) for text in (OTHER, TEXT, "closed")] == [1, 1, 1]


@pytest.mark.parametrize(("content", "value"), REPEATED)
def test_texts_for_search_and_recall_tell_it_once(content: str, value: Any) -> None:
    stored = brought(content, value)

    assert message_text(stored).count(WORD) == 1
    assert "\n".join(note.text for note in notes_of([as_sent(stored)])).count(WORD) == 1
    assert " ".join(one.text for one in passages_of([stored], "en")).count(WORD) == 1
    assert markdown_message(stored).count(WORD) == 1


def test_texts_for_search_and_recall_tell_what_is_said_beside_it() -> None:
    stored = brought(OTHER, TEXT)

    for told in (message_text(stored), markdown_message(stored)):
        assert (told.count(OTHER), told.count(TEXT)) == (1, 1)


def test_a_secret_does_not_make_it_two() -> None:
    """Under a key such as ``password`` the whole value is redacted; in a text, what follows the word."""
    value = {"login": {"password": {"first": "tr0ub4dor&3", "then": "horse battery"}}, "animal": WORD}
    stored = brought(json.dumps(value), value)

    assert frame_messages([redact_message(stored)]).count(WORD) == 1
    other = redact_message(brought(f"{OTHER} password: tr0ub4dor&3", value))
    assert OTHER in other.content


def test_a_context_serves_it_once_and_the_original_stays() -> None:
    policy = policy_of(context_window=4_000)
    call: Part = {"type": "tool_call", "id": "c1", "name": "zoo", "arguments": {}}
    stored = [message(1, "When?"), message(2, "", parts=[call]), brought(json.dumps(VALUE), VALUE)]
    found = put_together(material(stored, policy=policy))

    assert found.messages[-1].content == ""
    assert found.messages[-1].parts == (result(VALUE),)
    assert stored[-1].content == json.dumps(VALUE)
    assert found.gauge.tokens == sum(section.tokens for section in found.sections)


def test_a_giant_result_keeps_its_two_ends_once() -> None:
    policy = policy_of(context_window=4_000, on_failure="keep_full", oversized="elide")
    giant = f"BEGIN {'word ' * 9_000}END"
    call: Part = {"type": "tool_call", "id": "c1", "name": "zoo", "arguments": {}}
    stored = [message(1, "When?"), message(2, "", parts=[call]), brought(giant, giant)]
    found = put_together(material(stored, policy=policy))

    (part,) = found.messages[-1].parts
    assert found.messages[-1].content == ""
    assert (part["content"][:5], part["content"][-3:]) == ("BEGIN", "END")
    assert found.warnings == ("message_elided:3",)
    assert found.gauge.tokens <= found.gauge.window


def test_comparing_takes_linear_time() -> None:
    def comparing(size: int) -> Callable[[], object]:
        rows = [{"row": number, "of": WORD} for number in range(size)]
        content, parts = json.dumps(rows), (result(rows),)
        return lambda: own_content("tool", content, parts)

    assert_linear_in(comparing, 20_000)
