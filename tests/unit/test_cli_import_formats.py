"""Files with conversations: what is read from each format, and that every error names its place."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.complaints import ComplaintError
from app.cli.import_formats import Imported, read_conversations
from app.cli.transfer import UNFINISHED, _Importing
from app.client import ApiError
from app.client.errors import error_of
from tests.corpus import assert_values, corpus

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Where is the captain?"}
REPLY: Json = {"role": "assistant", "content": "At pier 7."}
CALL: Json = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port": "Riga"}'}}],
}
RESULT: Json = {"role": "tool", "tool_call_id": "c1", "content": "high at 18:45"}


def read(value: Any) -> list[Imported]:
    return read_conversations(json.dumps(value, ensure_ascii=False), "talk.json")


def one(value: Any) -> Imported:
    (found,) = read(value)
    return found


def refused(text: str, name: str = "talk.json") -> str:
    with pytest.raises(ComplaintError) as caught:
        read_conversations(text, name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("value", [{"messages": [USER, REPLY]}, [USER, REPLY], [{"messages": [USER, REPLY]}]])
def test_lists_of_messages_however_they_are_wrapped(value: Any) -> None:
    assert one(value).messages == (USER, REPLY)


def test_json_lines_of_conversations_and_of_messages() -> None:
    talks = [{"id": "first", "source": "x", "messages": [USER], "questions": []}, {"messages": [REPLY, USER]}]
    found = read_conversations("\n".join(json.dumps(talk) for talk in talks) + "\n", "talks.jsonl")
    assert [item.messages for item in found] == [(USER,), (REPLY, USER)]
    assert [item.place for item in found] == ["line 1", "line 2"]
    assert [item.about for item in found] == [{"title": "first"}, {}]
    (lines,) = read_conversations(f"{json.dumps(USER)}\n\n{json.dumps(REPLY)}\n", "talk.jsonl")
    assert lines.messages == (USER, REPLY)
    (single,) = read_conversations(json.dumps(USER), "talk.jsonl")
    assert single.messages == (USER,)


def test_what_openai_writes() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    system = {"role": "developer", "content": [{"type": "text", "text": "Speak of boats."}]}
    shown = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image], "name": "Anna"}
    found = one([system, shown, CALL, RESULT, REPLY])
    assert found.about == {"system_prompt": "Speak of boats."}
    assert found.messages == (
        {
            "role": "user",
            "content": "What is this?",
            "parts": [{"type": "media", "media_type": "image/png", "data": "aGk="}],
        },
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "tide", "arguments": {"port": "Riga"}}],
        },
        {
            "role": "tool",
            "content": "",
            "parts": [{"type": "tool_result", "tool_call_id": "c1", "content": "high at 18:45"}],
        },
        REPLY,
    )


def test_only_a_first_message_of_the_system_is_the_system_prompt() -> None:
    later = {"role": "system", "content": "Be brief."}
    assert one([USER, later]).messages == (USER, later)
    given_one = one({"system_prompt": "Speak of boats.", "messages": [later, USER]})
    assert given_one.messages == (later, USER)


def test_our_messages_keep_all_that_they_have() -> None:
    part = {"type": "tool_result", "tool_call_id": "c1", "name": "tide", "content": {"high": 1.5}, "extra": None}
    message = {
        "role": "tool",
        "content": "",
        "parts": [part],
        "event_type": "goal",
        "metadata": {"k": 1},
        "created_at": "2024-05-15T15:00:00Z",
        "model": "m",
        "usage": {"input_tokens": 3},
    }
    assert one([CALL, message]).messages[1:] == (message,)


@pytest.mark.parametrize(
    ("created_at", "utc_offset", "sent"),
    [
        ("2025-05-12T21:30:00Z", 180, "2025-05-13T00:30:00+03:00"),
        ("2025-05-14T04:00:00.25Z", -420, "2025-05-13T21:00:00.250000-07:00"),
        ("2025-05-12T21:30:00Z", None, "2025-05-12T21:30:00Z"),
    ],
)
def test_a_message_keeps_the_day_on_which_it_was_said(created_at: str, utc_offset: int | None, sent: str) -> None:
    read_in = one([{**USER, "created_at": created_at, "utc_offset": utc_offset}])
    assert read_in.messages[0]["created_at"] == sent


@pytest.mark.parametrize("utc_offset", [10**12, 5_000])
def test_an_offset_that_is_none_changes_nothing(utc_offset: int) -> None:
    read_in = one([{**USER, "created_at": "2025-05-12T21:30:00Z", "utc_offset": utc_offset}])
    assert read_in.messages[0]["created_at"] == "2025-05-12T21:30:00Z"


def test_a_result_that_names_its_call_by_id_is_linked_to_it() -> None:
    told = {"role": "tool", "content": "9", "parts": [{"type": "tool_result", "id": "c1", "content": "9"}]}
    _, message = one([CALL, told]).messages
    assert message["parts"] == [{"type": "tool_result", "id": "c1", "content": "9", "tool_call_id": "c1"}]


def test_every_message_of_an_export_comes_in_so_that_each_keeps_its_number() -> None:
    row = {"id": "x", "seq": 1, "status": "complete", "protected_reason": "compressible", "event_type": "casual"}
    exported = {
        "format": "throughline.conversation",
        "version": 1,
        "conversation": {"title": "Boats", "preset": "handoff", "policy": {"target": 0.5}, "state_version": 3},
        "messages": [
            {**row, **USER},
            {**row, "role": "user", "content": "/compact", "event_type": "command", "model": ""},
            {**row, "role": "user", "content": "", "status": "erased"},
            {**row, **REPLY, "protected_reason": "pinned", "reasoning": "Hm."},
            {**row, "role": "assistant", "content": "", "status": "interrupted"},
            {**row, **REPLY, "status": "superseded"},
            {**row, "role": "user", "content": ""},
        ],
        "states": [],
        "anchors": [],
        "files": [{"name": "a.md", "media_type": "text/plain", "tokens": 4, "data": "YQ=="}, {"name": "no data"}],
    }
    found = one(exported)
    assert [file["name"] for file in found.files] == ["a.md"]
    assert one({**exported, "files": 7, "anchors": 7}).files == (), "an edited file"
    user, reply = {**USER, "event_type": "casual"}, {**REPLY, "event_type": "casual"}
    assert found.messages == (
        user,
        {"role": "user", "content": "/compact", "event_type": "command", "is_command": True},
        {**user, "content": "", "status": "erased"},
        {**reply, "reasoning": "Hm."},
        {**reply, "content": "", "status": "interrupted"},
        {**reply, "status": "superseded"},
        {**user, "content": "", "status": "erased"},
    )
    about = {"title": "Boats", "preset": "handoff", "preset_version": 1}  # it is from before presets had versions
    assert (found.about, found.policy) == (about, {"target": 0.5})
    assert (found.pinned, found.is_export) == (frozenset({3}), True)


def test_of_an_exports_policy_what_differs_from_the_preset_here_is_sent_and_no_field_that_is_gone() -> None:
    policy = {"target": 0.5, "verify": "auto", "continuity_probes": "code"}
    about = {"preset": "handoff", "policy": policy}
    found = one({"format": "throughline.conversation", "version": 1, "conversation": about, "messages": [USER]})
    preset = SimpleNamespace(name="handoff", policy={"target": 0.6, "verify": "auto"}, earlier=[])
    client: Any = SimpleNamespace(presets=lambda: [preset])
    assert _Importing(client, found, "key", "talk.json")._conversation_fields({})["policy"] == {"target": 0.5}


@pytest.mark.parametrize(("version", "own"), [(None, {"target": 0.5}), (1, {"target": 0.5}), (2, {}), (7, {})], ids=str)
def test_an_exports_policy_is_compared_with_the_version_of_its_preset(version: int | None, own: Json) -> None:
    about = {"preset": "handoff", "policy": {"target": 0.5}, **({"preset_version": version} if version else {})}
    found = one({"format": "throughline.conversation", "version": 1, "conversation": about, "messages": [USER]})
    earlier = [SimpleNamespace(version=1, policy={"target": 0.6})]
    presets = [SimpleNamespace(name="handoff", version=2, policy={"target": 0.5}, earlier=earlier)]
    client: Any = SimpleNamespace(presets=lambda: presets)
    importing = _Importing(client, found, "key", "talk.json")
    fields = importing._conversation_fields({})
    assert (fields["preset_version"], fields["policy"]) == (version or 1, own)
    assert "preset_version" not in importing._conversation_fields({"preset": "semantic"})


@pytest.mark.parametrize(("status", "is_passing"), [(503, True), (429, True), (409, False)])
@pytest.mark.parametrize("step", ["attach_file", "pin_message"])
def test_what_a_service_in_trouble_did_not_take_is_left_to_a_repeated_import(
    step: str, status: int, *, is_passing: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    file = {"name": "tides.txt", "media_type": "text/plain", "data": "SGlnaC4="}
    pinned = {**USER, "protected_reason": "pinned"}
    exported = {"format": "throughline.conversation", "version": 1, "conversation": {}}
    client = MagicMock()
    client.create_conversation.return_value = SimpleNamespace(id="c", message_count=0, metadata={UNFINISHED: True})
    client.append_many.return_value = [SimpleNamespace(id="m")]
    error = error_of(status, {"code": "x", "detail": "Not now.", "retryable": is_passing})
    getattr(client, step).side_effect = error
    importing = _Importing(client, one({**exported, "messages": [pinned], "files": [file]}), "key", "talk.json")
    if is_passing:
        with pytest.raises(ApiError):
            importing.run({}, lambda _: None)
        client.change_conversation.assert_not_called()  # so the conversation is still marked as unfinished
        client.delete_conversation.assert_not_called()
    else:
        assert importing.run({}, lambda _: None) == "c"
        assert "Not now." in capsys.readouterr().err
        client.change_conversation.assert_called_once_with("c", metadata={UNFINISHED: None})


@pytest.mark.parametrize("version", [1, 2, None])
def test_only_exports_of_a_known_version_are_read(version: int | None) -> None:
    exported: Json = {"format": "throughline.conversation", "version": version, "conversation": {}, "messages": [USER]}
    if version == 1:
        assert one(exported).messages == (USER,)
    else:
        assert f"an export of version {version}" in refused(json.dumps(exported))


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"title": "t" * 501}, "title: String should have at most 500 characters"),
        ({"title": "\0"}, "title: must not contain the character NUL"),
        ({"metadata": {"k": "\udfff"}}, "metadata.k: must not contain half of a surrogate pair"),
    ],
)
def test_what_the_service_would_refuse_of_a_conversation_is_told_before_any_is_sent(about: Json, why: str) -> None:
    line = "line 2: "
    told = refused("\n".join(json.dumps({**one, "messages": [USER]}) for one in ({}, about)))
    assert f"{line}{why}." in told
    assert line not in refused(json.dumps({**about, "messages": [USER]}))


def test_a_message_with_more_text_than_is_taken_is_told_of_before_anything_is_sent() -> None:
    texts = [{**USER, "content": "я" * count} for count in (2_000_000, 2_000_001)]
    assert one({"messages": texts[:1]}).messages == tuple(texts[:1])
    assert "message 2: the texts of the message have 4000002 bytes" in refused(json.dumps({"messages": texts}))


def test_a_file_that_is_no_export_says_nothing_of_what_became_of_its_messages() -> None:
    told = {**REPLY, "status": "finished_successfully", "is_command": True, "reasoning": ["thoughts"]}
    assert one({"messages": [USER, told]}).messages == (USER, REPLY)


def typed_commands(**told: Any) -> list[bool]:
    row = {"status": "complete", "event_type": "command", **told}
    own = [{**row, "role": "user", "content": "deploy now"}, {**row, "role": "assistant", "content": "Deployed."}]
    typed = [{**row, "role": "user", "content": "/compact money"}, {**row, "role": "assistant", "content": "Folded."}]
    erased = [{**typed[0], "content": "", "status": "erased"}, typed[1]]
    between = [typed[0], own[0], typed[1], *own[1:]]
    messages = [*own, *typed, *erased, *between]
    found = one({"format": "throughline.conversation", "version": 1, "conversation": {}, "messages": messages})
    assert len(found.messages) == len(messages)
    return [message.get("is_command", False) for message in found.messages]


def test_a_message_that_its_client_called_a_command_is_an_ordinary_one() -> None:
    assert typed_commands() == [False, False, True, True, True, True, True, False, True, False]


def test_an_export_that_tells_which_messages_are_commands_is_believed() -> None:
    assert not any(typed_commands(is_command=False))


def test_every_complaint_names_the_message() -> None:
    assert_values(corpus("import_faults"), lambda value: refused(json.dumps(value)), agrees=str.startswith)


def test_every_complaint_names_the_line() -> None:
    lines = [json.dumps({"messages": [USER]}), "{broken", json.dumps({"messages": [USER]})]
    assert refused("\n".join(lines), "talks.jsonl").startswith("talks.jsonl: line 2: no JSON: ")
    assert refused(f"{lines[0]}\n{{oops", "talks.jsonl").endswith(" at column 2.")
    lines[1] = json.dumps({"messages": [USER, {"role": "user"}]})
    assert refused("\n".join(lines), "talks.jsonl") == "talks.jsonl: line 2, message 2: content cannot be empty."
    messages = [json.dumps(USER), json.dumps({"role": "user", "content": ""})]
    assert refused("\n".join(messages), "talk.jsonl") == "talk.jsonl: line 2: content cannot be empty."
    messages = [json.dumps(USER), json.dumps({"rol": "user", "content": "x"})]
    assert refused("\n".join(messages), "talk.jsonl") == "talk.jsonl: line 2: role: Field required."
    assert refused("\n{oops", "talk.json").startswith("talk.json: no JSON: ")
    assert {refused(text) for text in ("", " \n\n")} == {"talk.json: the file is empty."}
    assert refused("[" * 100_000, "talk.json") == "talk.json: no JSON: nested too deeply."


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "messages", "parts", "format", "conversation", "tool_calls", "function"]
            ),
            inner | st.sampled_from(["user", "tool", "throughline.conversation", "tool_result"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_json)
def test_whatever_a_file_holds_it_is_read_or_refused(value: Any) -> None:
    found: list[Imported] = []
    with contextlib.suppress(ComplaintError):
        found = read(value)
    roles = {message["role"] for item in found for message in item.messages}
    assert roles <= {"user", "assistant", "system", "tool"}


def test_numbers_that_an_export_writes_out_in_full_are_read() -> None:
    export = {
        "format": "throughline.conversation",
        "version": 1,
        "conversation": {"metadata": {"mass": 10**22, "far": 10**300, "id": 2**63 - 1}},
        "messages": [{**USER, "metadata": {"mass": -(10**23)}}],
    }
    found = one(export)
    assert found.about["metadata"] == {"mass": 10**22, "far": 10**300, "id": 2**63 - 1}
    assert found.messages[0]["metadata"] == {"mass": -(10**23)}


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (RESULT, "no tool call with id 'c1' comes before its result."),
        ({**USER, "content": "a\0b"}, "content: must not contain the character NUL."),
        ({**USER, "content": "a\ud800b"}, "content: must not contain half of a surrogate pair."),
        ({**USER, "metadata": {"a": 2**63 + 1}}, "metadata.a: must fit into 64 bits."),
    ],
)
def test_what_the_service_would_refuse_is_told_before_anything_is_sent(message: Json, why: str) -> None:
    told = refused(json.dumps([USER, message, CALL]))
    assert told == f"talk.json: message 2: {why}"
