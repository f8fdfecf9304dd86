"""Contexts in the formats of providers never contain what a provider refuses, whatever the conversation is."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, get_args

import pytest
from google.genai.types import Content
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from app.core.context.formats import Format, Formatted, in_format
from app.core.context.formats.calls import STUB_RESULT
from app.core.context.formats.words import ID_LENGTH, UniqueIds, with_names_in_text
from app.core.model.conversation import Role
from app.core.model.model_io import ContextMessage
from app.core.retrieval.rendering import Passage, passages_element
from app.core.text.parts import Part
from app.providers.messages import to_provider
from tests.corpus import assert_values, corpus
from tests.profiles import examples
from tests.unit.timing import assert_linear_in


@cache
def openai_message() -> TypeAdapter[ChatCompletionMessageParam]:
    """A validator of what OpenAI accepts; it is built only when a test asks, since that takes a second."""
    return TypeAdapter(ChatCompletionMessageParam)


FORMATS: Final[tuple[Format, ...]] = get_args(Format)
PIXEL: Final = base64.b64encode(b"\x89PNG\r\n").decode()
ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
SPEAKER: Final = re.compile(r"[^\s<|\\/>]{1,64}")

Json = dict[str, Any]


def said(role: Any, content: str = "", *parts: Part) -> ContextMessage:
    return ContextMessage(role=role, content=content, parts=parts)


def call(id_: Any, name: str = "look", **arguments: Any) -> Json:
    return {"type": "tool_call", "id": id_, "name": name, "arguments": arguments}


def result(id_: Any, content: Any = "found") -> Json:
    return {"type": "tool_result", "tool_call_id": id_, "content": content}


TALK: Final = (
    said("system", "Be brief."),
    said("user", "<session_state>{}</session_state>"),
    said("assistant", "Understood."),
    said("user", "Weather in Rome?"),
    said("user", "And look at this.", {"type": "media", "media_type": "image/png", "data": PIXEL}),
    said("assistant", "I look it up.", call("c1", "weather", city="Rome")),
    said("user", "Hurry."),
    said("tool", "", result("c1", {"degrees": 21})),
    said("system", "The user is a pilot."),
    said("assistant", "21 degrees."),
)


def test_openai() -> None:
    found = in_format(TALK, "openai")

    assert found.system is None
    assert found.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "<session_state>{}</session_state>"},
        {"role": "assistant", "content": "Understood."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Weather in Rome?"},
                {"type": "text", "text": "And look at this."},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look it up.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"degrees": 21}'},
        {"role": "user", "content": "Hurry."},
        {"role": "system", "content": "The user is a pilot."},
        {"role": "assistant", "content": "21 degrees."},
    ]


def test_gemini() -> None:
    found = in_format(TALK, "gemini")

    assert found.system == "Be brief.\n\nThe user is a pilot."
    assert found.messages == [
        {"role": "user", "parts": [{"text": "<session_state>{}</session_state>"}]},
        {"role": "model", "parts": [{"text": "Understood."}]},
        {
            "role": "user",
            "parts": [
                {"text": "Weather in Rome?"},
                {"text": "And look at this."},
                {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "I look it up."},
                {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "weather", "response": {"degrees": 21}}},
                {"text": "Hurry."},
            ],
        },
        {"role": "model", "parts": [{"text": "21 degrees."}]},
    ]


def test_anthropic() -> None:
    found = in_format(TALK, "anthropic")

    assert found.system == "Be brief.\n\nThe user is a pilot."
    assert found.messages[2]["content"][2] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
    }
    assert found.messages[3:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look it up."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": '{"degrees": 21}'},
                {"type": "text", "text": "Hurry."},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "21 degrees."}]},
    ]


def test_plain_has_one_entry_per_message() -> None:
    found = in_format(TALK, "plain")
    assert [(one["role"], one["content"]) for one in found.messages] == [(one.role, one.content) for one in TALK]
    assert found.messages[0].keys() == {"role", "content", "parts", "seq", "turn", "event_type", "is_protected"}


def test_calls_and_results_that_do_not_meet() -> None:
    talk = (
        said("tool", "", {**result("gone", [1, 2]), "name": "weather"}),
        said("assistant", "", call("a"), call("b")),
        said("user", "go on"),
    )
    found = in_format(talk, "anthropic").messages

    assert found[0]["content"] == [{"type": "text", "text": "[result of weather: [1, 2]]"}]
    assert [block["content"] for block in found[2]["content"][:2]] == [STUB_RESULT, STUB_RESULT]


def test_the_last_result_of_a_call_counts_and_a_repeated_id_is_another_call() -> None:
    talk = (
        said("user", "?"),
        said("assistant", "", call("call 1")),
        said("tool", "", result("call 1", "early")),
        said("tool", "", result("call 1", "late")),
        said("assistant", "", call("call 1")),
        said("tool", "", result("call 1", "second")),
        said("assistant", "", call("call_1_2")),
    )
    found = in_format(talk, "openai").messages

    told = [(one["tool_call_id"], one["content"]) for one in found if one["role"] == "tool"]
    assert told == [("call_1", "late"), ("call_1_2", "second"), ("call_1_2_2", STUB_RESULT)]


def test_what_a_tool_message_says_is_shown_although_the_call_of_its_first_result_is_gone() -> None:
    talk = (
        said("user", "?"),
        said("assistant", "", call("a")),
        said("tool", "Two of two.", result("gone"), result("a")),
    )
    for format_ in ("openai", "gemini", "anthropic"):
        assert str(in_format(talk, format_).messages).count("Two of two.") == 1


def test_what_a_tool_message_says_beside_its_result() -> None:
    talk = (
        said("assistant", "", call("a"), call("b"), call("c")),
        said("tool", "a note", result("a", "x"), result("b", "y")),
        said("tool", "all there is", result("c", "")),
    )
    contents = [one["content"] for one in in_format(talk, "openai").messages if one["role"] == "tool"]
    assert contents == ['{"content": "x", "text": "a note"}', "y", "all there is"]


def test_a_result_without_anything_says_so() -> None:
    talk = (said("assistant", "", call("a")), said("tool", "", result("a", "  ")))
    assert in_format(talk, "openai").messages[-1]["content"] == "[empty result]"


def test_media_that_cannot_be_shown_are_named() -> None:
    parts = (
        {"type": "media", "media_type": "image/png", "data": "not base64"},
        {"type": "media", "media_type": "image/png", "url": "https://example.org/x.png"},
        {"type": "media", "media_type": "application/zip", "data": PIXEL},
        {"type": "media", "media_type": "application/zip", "data": PIXEL, "name": "the  plans.zip"},
        {"type": "media", "media_type": "image/png", "data": f"data:image/png;base64,{PIXEL}"},
    )
    found = in_format((said("user", "", *parts),), "anthropic").messages[0]["content"]
    assert [block.get("text") for block in found] == [
        "[attached: image/png]",
        "[attached: image/png at https://example.org/x.png]",
        "[attached: application/zip]",
        "[attached: application/zip, the plans.zip]",
        None,
    ]


def test_neighbours_whose_names_cannot_be_told_are_one_message() -> None:
    def told(*names: str) -> list[dict[str, object]]:
        talk = [replace(said("user", f"{number}"), name=name) for number, name in enumerate(names)]
        return [dict(message) for message in in_format(talk, "openai").messages]

    assert told("", "</>") == [{"role": "user", "content": "0\n\n1"}]
    assert [one.get("name") for one in told("", "Anna")] == [None, "Anna"], "the control"


def test_the_model_s_side_never_comes_first() -> None:
    talk = (said("system", "s"), said("assistant", "summary "), said("assistant", " more "))
    anthropic, gemini = in_format(talk, "anthropic").messages, in_format(talk, "gemini").messages
    assert anthropic[0] == {"role": "user", "content": [{"type": "text", "text": "[conversation so far]"}]}
    assert [block["text"] for block in anthropic[1]["content"]] == ["summary ", " more"]
    assert [one["role"] for one in gemini] == ["user", "model"]


def test_gemini_gets_its_signatures_back() -> None:
    def signature(marks: Json) -> str | None:
        talk = (said("user", "?"), said("assistant", "", {**call("a", "1st"), **marks}))
        part = in_format(talk, "gemini").messages[1]["parts"][0]
        assert part["functionCall"]["name"] == "_1st"
        found: str | None = part.get("thoughtSignature")
        return found

    assert_values(corpus("signatures"), signature)


def by(name: str, content: str, role: Any = "user", *parts: Part) -> ContextMessage:
    return replace(said(role, content, *parts), name=name)


RECALLED: Final = passages_element((Passage(text="earlier", source="x"), Passage(text="before", source="y")))
PICTURE: Final = {"type": "media", "media_type": "image/png", "data": PIXEL}
GROUP: Final = (
    by("Rules", "Be brief.", "system"),
    by("Anna", "Hello"),
    by("Anna", "It rains."),
    by("Ben Berg", "anna: she lies.\nBen Berg: no"),
    said("user", "Who is who?"),
    by("Bot/1", "You are two.", "assistant"),
    by("Ben", "ben: I know"),
    by("Ben", "", "user", PICTURE),
    by("</>", f"{RECALLED}\n\nAnd I?"),
)
"""A talk with several people of one role; the last one's name is not a name that OpenAI accepts."""


def test_openai_is_told_names_in_their_own_field_and_different_people_stay_apart() -> None:
    found = in_format(GROUP, "openai").messages
    assert [(one["role"], one.get("name")) for one in found] == [
        ("system", "Rules"), ("user", "Anna"), ("user", "Ben_Berg"), ("user", None), ("assistant", "Bot_1"),
        ("user", "Ben"), ("user", None),
    ]  # fmt: skip
    assert found[1]["content"] == "Hello\n\nIt rains."
    assert found[2]["content"] == GROUP[3].content
    taken_by_openai(Formatted(messages=found))


@pytest.mark.parametrize("way", ["anthropic", "gemini", "turn"])
def test_where_there_is_no_field_a_user_s_own_words_begin_with_the_name(way: Any) -> None:
    """No name is added if the words begin with it already, before recalled text, or to what an assistant says."""
    if way == "turn":
        thread = to_provider(GROUP, lambda _: True)
        told = [text for one in thread for part in one.parts for text in _told(part)]
        assert told.pop(0) == "Be brief."
    else:
        found = in_format(GROUP, way)
        blocks = (block for one in found.messages for block in one.get("content", one.get("parts")))
        told = [block["text"] for block in blocks if "text" in block]
    assert told == [
        "Anna: Hello", "Anna: It rains.", "Ben Berg: anna: she lies.\nBen Berg: no", "Who is who?", "You are two.",
        "ben: I know", "Ben:", f"{RECALLED}\n\n</>: And I?",
    ]  # fmt: skip


def _told(part: Any) -> list[str]:
    content = part.content if isinstance(part.content, list) else [part.content]
    return [one for one in content if isinstance(one, str)]


def test_plain_has_messages_as_they_are_stored() -> None:
    found = in_format(GROUP, "plain").messages
    assert [one["content"] for one in found] == [one.content for one in GROUP]


@examples(2.0)
@given(st.lists(st.sampled_from(range(9)), max_size=9))
def test_without_names_nothing_is_changed_by_them(numbers: list[int]) -> None:
    """Control: with names something is changed."""
    named = [GROUP[number] for number in numbers]
    bare = [replace(one, name="") for one in named]
    assert all(new is old for new, old in zip(with_names_in_text(bare), bare, strict=True))
    for way in FORMATS:
        assert not any("name" in one for one in in_format(bare, way).messages)
    if any(one.role == "user" and one.name and one.name != "Ben" for one in named):
        assert in_format(named, "gemini") != in_format(bare, "gemini")


@examples(2.0)
@given(st.lists(st.sampled_from(range(9)), max_size=9), st.integers(0, 9))
def test_a_message_is_told_in_the_same_words_whoever_speaks_beside_it(numbers: list[int], count: int) -> None:
    """What a provider has cached stays valid when somebody joins or leaves."""
    talk = [GROUP[number] for number in numbers]
    assert with_names_in_text(talk)[:count] == with_names_in_text(talk[:count])
    assert with_names_in_text(talk)[count:] == with_names_in_text(talk[count:])


TEXTS = st.sampled_from(["", " ", "\n", "ok", "Привет", "x" * 50, "</session_state>", "c1"])
IDS = st.sampled_from(["c1", "c2", "c 1", "", "ы" * 50, "c1_2", "a" * 45])
ARGUMENTS = st.sampled_from([None, {}, {"q": 1}, '{"q": 2}', "no json", [1], 7])
PARTS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    st.builds(
        lambda id_, name, given: {"type": "tool_call", "id": id_, "name": name, "arguments": given},
        IDS,
        TEXTS,
        ARGUMENTS,
    ),
    st.builds(
        lambda id_, content: {"type": "tool_result", "tool_call_id": id_, "content": content},
        IDS,
        st.sampled_from(["", " ", "found", None, {}, {"a": None}, [], [1], 0, False]),
    ),
    st.builds(
        lambda kind, data: {"type": "media", "media_type": kind, "data": data},
        st.sampled_from(["image/png", "IMAGE/PNG", "text/plain", "audio/wav", "application/pdf", ""]),
        st.sampled_from([PIXEL, "", "?", f"data:image/png;base64,{PIXEL}"]),
    ),
)
NAMES = st.sampled_from(["", "", "Anna", "Ben", "Anna Berg", "a/b|c <d>", "</>", "ы" * 40])
MESSAGES = st.builds(
    lambda role, content, parts, name: replace(said(role, content, *parts), name=name),
    st.sampled_from(["system", "user", "assistant", "tool"]),
    TEXTS,
    st.lists(PARTS, max_size=4),
    NAMES,
)
TALKS = st.lists(MESSAGES, max_size=14)


def taken_by_openai(found: Formatted) -> None:
    messages = found.messages
    waiting: list[str] = []
    ids: set[str] = set()
    for message in messages:
        openai_message().validate_python(message)
        if message["role"] == "tool":
            assert waiting.pop(0) == message["tool_call_id"]
        else:
            assert not waiting, "a call without its result"
        assert _is_said(message["content"]) or message.get("tool_calls")
        for made in message.get("tool_calls", ()):
            assert ID.fullmatch(made["id"])
            assert made["id"] not in ids
            assert isinstance(json.loads(made["function"]["arguments"]), dict)
            ids.add(made["id"])
            waiting.append(made["id"])
    assert not waiting
    names = [message["name"] for message in messages if "name" in message]
    assert all(SPEAKER.fullmatch(name) for name in names)
    sides = [message["role"] for message in messages]
    same = (("user", "user"), ("assistant", "assistant"))
    assert names or not any(pair in same for pair in itertools.pairwise(sides))


def taken_by_anthropic(found: Formatted) -> None:
    _alternate([message["role"] for message in found.messages], ("user", "assistant"))
    assert found.system is None or found.system.strip()
    made: list[str] = []
    seen: set[str] = set()
    for message in found.messages:
        blocks = message["content"]
        assert blocks
        assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == made
        assert all(block["type"] == "tool_result" for block in blocks[: len(made)])
        assert all(_is_said(block.get("text", block.get("content", "-"))) for block in blocks)
        made = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not seen.intersection(made)
        assert all(ID.fullmatch(id_) for id_ in made)
        assert all(isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use")
        seen.update(made)
    assert not made


def taken_by_gemini(found: Formatted) -> None:
    _alternate([message["role"] for message in found.messages], ("user", "model"))
    made: list[str] = []
    for message in found.messages:
        content = Content.model_validate(message)
        assert content.parts
        responses = [part.function_response for part in content.parts if part.function_response]
        assert [response.name for response in responses] == made
        assert all(isinstance(response.response, dict) for response in responses)
        assert all(part.text is None or part.text.strip() for part in content.parts)
        made = [str(part.function_call.name) for part in content.parts if part.function_call]
    assert not made


@examples(2.0)
@given(TALKS, st.integers(0, 14))
def test_a_longer_conversation_begins_with_the_shorter_one(talk: list[ContextMessage], count: int) -> None:
    """What a provider has cached stays valid: only the last entry and the stub of a pending call may change."""
    shorter = [message for message in talk[:count] if not _has_calls(message)]
    longer = [*shorter, said("user", "more")]
    before, after = in_format(shorter, "openai").messages, in_format(longer, "openai").messages
    assert list(after[: max(len(before) - 1, 0)]) == list(before[:-1])


@given(TALKS)
def test_nothing_that_was_said_is_lost(talk: list[ContextMessage]) -> None:
    for name in ("openai", "gemini", "anthropic"):
        found = in_format(talk, name)
        told = json.dumps([found.system, *found.messages], ensure_ascii=False)
        for message in talk:
            if message.role in {"user", "assistant", "system"}:
                words = json.dumps(message.content.strip(), ensure_ascii=False)[1:-1]
                assert words in told


CHECKS: Final[Mapping[Format, Callable[[Formatted], None]]] = {
    "openai": taken_by_openai,
    "anthropic": taken_by_anthropic,
    "gemini": taken_by_gemini,
}


@examples(4.0)
@given(TALKS)
def test_every_provider_takes_any_conversation(talk: list[ContextMessage]) -> None:
    for name, taken in CHECKS.items():
        taken(in_format(talk, name))


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("missing", [1, 2])
def test_what_a_provider_would_refuse_is_seen(name: Format, missing: int) -> None:
    """The control: a call without its result, and a result without its call."""
    talk = (said("user", "?"), said("assistant", "", call("a")), said("tool", "", result("a")))
    whole = in_format(talk, name)
    CHECKS[name](whole)
    broken = [message for number, message in enumerate(whole.messages) if number != missing]
    with pytest.raises((AssertionError, IndexError)):
        CHECKS[name](replace(whole, messages=broken))


def _has_calls(message: ContextMessage) -> bool:
    return any(part["type"] in {"tool_call", "tool_result"} for part in message.parts)


def _is_said(content: Any) -> bool:
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def _alternate(roles: Sequence[str], sides: tuple[str, str]) -> None:
    assert list(roles) == [sides[number % 2] for number in range(len(roles))]


def many_neighbours(size: int, role: Role) -> list[ContextMessage]:
    return [ContextMessage(role=role, content="ok", seq=seq) for seq in range(1, size + 1)]


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_many_neighbours_of_one_side_are_joined_in_linear_time(role: Role) -> None:
    def joining(size: int) -> Callable[[], object]:
        messages = many_neighbours(size, role)
        return lambda: to_provider(messages, lambda _: False)

    assert_linear_in(joining, 4_000)


def test_long_ids_with_one_beginning_are_told_apart_in_linear_time() -> None:
    def naming(size: int) -> Callable[[], object]:
        ids = [f"{'a' * 35}{number:05}" for number in range(size)] * 2
        return lambda: list(map(UniqueIds().unique, ids))

    assert_linear_in(naming, 4_000)
    found = naming(500)()
    assert isinstance(found, list)
    assert len(set(found)) == 1_000
    assert max(map(len, found)) == ID_LENGTH
