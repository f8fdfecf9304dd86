"""What is refused at the edge, and in which words; what is accepted, and in which form."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic_ai.exceptions import ModelHTTPError

from app.core.model import errors
from app.core.model.errors import ConflictError, DomainError, InvalidInputError
from app.http.chat_requests import ChatRequest
from app.http.errors import STATUS, problem_of, status_of
from app.http.idempotency import fingerprint, kept_key
from app.http.present import present_compaction, present_conversation_summary
from app.http.refusals import BodyTooLargeError, UnreadableError
from app.http.requests import (
    CompactRequest,
    ConversationCreate,
    ConversationPatch,
    MessageAppend,
    MessageInput,
    PastMessage,
    TokenCountRequest,
)
from app.http.schemas import Message
from app.http.strict_json import MAX_DEPTH, MAX_VALUES, is_json, parse
from app.providers.failures import unavailable
from app.usecases.shared.compaction_views import CompactionView
from tests.corpus import assert_values, assert_verdicts, corpus, names
from tests.rows import each
from tests.unit.api_fakes import CONVERSATION, compaction, conversation_view, message


def faults(model: type[Any], **values: Any) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        model(**values)
    return [(".".join(map(str, item["loc"])), item["msg"]) for item in caught.value.errors()]


def refused(body: str | bytes) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInputError) as caught:
        parse(body if isinstance(body, bytes) else body.encode())
    return [(item.field, item.message) for item in caught.value.errors]


@pytest.mark.parametrize("content", ["", " ", "\n\t "])
def test_blank_content_without_parts(content: str) -> None:
    assert faults(MessageInput, role="user", content=content) == [("content", "Value error, content cannot be empty")]


def test_absent_content_without_parts() -> None:
    assert faults(MessageInput, role="user") == [("content", "Value error, content cannot be empty")]


def test_blank_content_with_parts_is_fine() -> None:
    part = {"type": "text", "text": "t", "mine": {"k": [1]}}
    draft = MessageInput(role="user", parts=[part]).draft()
    assert draft.content == ""
    assert draft.parts == (part,)


def test_parts_are_kept_exactly_as_given() -> None:
    parts = [
        {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"q": None}, "x-extra": 1},
        {"type": "tool_result", "tool_call_id": "c1", "content": [1, "two"]},
        {"type": "media", "media_type": "image/png", "url": "https://example.test/a.png"},
    ]
    assert list(MessageInput(role="tool", content="", parts=parts).draft().parts) == parts


def test_a_result_may_name_its_call_by_id_alone() -> None:
    part = {"type": "tool_result", "id": "c1", "content": "x"}
    both = {**part, "tool_call_id": "c2"}
    draft = MessageInput(role="tool", parts=[part, both]).draft()
    assert list(draft.parts) == [{**part, "tool_call_id": "c1"}, both]


@pytest.mark.parametrize("status", ["interrupted", "superseded"])
def test_only_a_reply_is_interrupted_or_gives_way(status: str) -> None:
    assert PastMessage(role="assistant", content="", status=status).draft().status == status
    expected = [("role", f"Value error, only a message of the assistant can be {status}")]
    assert faults(PastMessage, role="user", content="c", status=status) == expected


def test_only_what_a_user_types_is_a_command() -> None:
    assert PastMessage(role="user", content="/compact", is_command=True).draft().is_command
    (fault,) = faults(PastMessage, role="system", content="c", is_command=True)
    assert fault == ("role", "Value error, only a user types a command, and only the assistant answers it")


def test_of_an_erased_message_nothing_that_it_said_is_taken() -> None:
    parts = [
        {"type": "text", "text": "secret"},
        {"type": "media", "media_type": "image/png", "data": "c2VjcmV0"},
        {"type": "tool_call", "id": "c1", "name": "secret", "arguments": {"q": "secret"}, "more": "secret"},
    ]
    said: dict[str, Any] = {"content": "secret", "parts": parts, "metadata": {"name": "secret"}, "model": "secret"}
    about: dict[str, Any] = {"role": "assistant", "created_at": "2026-11-20T10:30:00Z", "reasoning": "secret"}
    left = PastMessage(**said, **about, status="erased").draft()
    assert "secret" in repr(PastMessage(**said, **about).draft())
    assert "secret" not in repr(left)
    assert (left.role, left.status, left.parts[0]["id"]) == ("assistant", "erased", "c1")
    assert left.created_at == datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
    assert PastMessage(role="user", status="erased").draft().computed_weight().tokens == 0


def test_a_message_that_is_appended_alone_has_no_past() -> None:
    assert faults(MessageAppend, role="user", content="c", status="erased") == [
        ("status", "Extra inputs are not permitted")
    ]


@pytest.mark.parametrize("offset", ["+00:00", "+14:00"])
def test_a_time_that_is_taken_can_be_shown_in_utc_and_taken_again(offset: str) -> None:
    time = f"1900-01-01T00:00:00{offset}"
    if offset == "+00:00":
        assert MessageInput(role="user", content="c", created_at=time).draft().created_at is not None
    else:
        expected = [("created_at", "Value error, must be between the years 1900 and 9000")]
        assert faults(MessageInput, role="user", content="c", created_at=time) == expected


MODELS: dict[str, type[BaseModel]] = {
    model.__name__: model for model in (CompactRequest, ConversationCreate, MessageAppend, MessageInput)
}


def test_wrong_fields_are_named() -> None:
    """The faults are in parts, in the service's own fields, in limits of conversations, and in times and counts."""

    def named(text: dict[str, Any]) -> list[str]:
        return [where for where, _ in faults(MODELS[text["model"]], **text["values"])]

    assert_values(corpus("schema_faults"), named)


@pytest.mark.parametrize("parts", [{}, {"parts": []}, {"parts": [{"type": "text", "text": "t"}]}])
def test_tool_messages_need_a_result(parts: dict[str, Any]) -> None:
    found = faults(MessageInput, role="tool", content="c", **parts)
    assert found == [("parts", "Value error, a message of role tool needs a tool_result")]


@pytest.mark.parametrize("event_type", ["", "  "])
def test_blank_event_type(event_type: str) -> None:
    expected = [("event_type", "Value error, event_type cannot be empty")]
    assert faults(MessageInput, role="user", content="c", event_type=event_type) == expected
    assert faults(ChatRequest, content="c", event_type=event_type) == expected


@pytest.mark.parametrize("name", ["query", "compact", "level"])
def test_later_fields_are_unknown(name: str) -> None:
    assert [where for where, _ in faults(ChatRequest, content="c", **{name: True})] == [name]


@pytest.mark.parametrize("locale", ["en", "ru", "pt-BR", "zh-Hant-TW"])
def test_locales(locale: str) -> None:
    assert ConversationCreate(locale=locale).new().locale == locale


@pytest.mark.parametrize("locale", ["", "e", "en_US", "english language", "pt-BR!", "en\n"])
def test_a_locale_that_is_no_language_tag_is_told_what_one_looks_like(locale: str) -> None:
    with pytest.raises(ValidationError, match="such as `en` or `pt-BR`"):
        ConversationCreate(locale=locale)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_flags_are_booleans(value: Any) -> None:
    assert [where for where, _ in faults(CompactRequest, wait=value)] == ["wait"]


def test_patch_changes_only_what_is_given() -> None:
    assert ConversationPatch().changes() == {}
    assert ConversationPatch(title=None, policy={}).changes() == {"title": None, "policy": {}}


@pytest.mark.parametrize("values", [{}, {"text": "t", "messages": []}])
def test_counting_takes_one_thing(values: dict[str, Any]) -> None:
    assert faults(TokenCountRequest, **values) == [("", "Value error, give either text or messages")]


@each(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"{'a': 1}",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'"\xed\xa0\x80"',
        b'{"a": "\x00"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b"x",
        "\ufeff{}".encode(),
        '{"a": 1}'.encode("utf-16"),
    ],
)
def test_unreadable_bodies(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        parse(body)


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_whole_number_of_thousands_of_digits_is_named(sign: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse(f'{{"a": [{sign}{"9" * 5_000}]}}'.encode())
    assert [(one.field, one.message) for one in refused.value.errors] == [("a.0", "is too large for a number")]


def test_where_a_body_breaks_is_told_and_nothing_of_what_stands_there() -> None:
    def place(body: str | bytes) -> str:
        with pytest.raises(UnreadableError) as refused:
            parse(body.encode() if isinstance(body, str) else body)
        said = str(refused.value)
        assert said == f"The body is not valid JSON in UTF-8: {said.partition(': ')[2]}"
        return said.partition(": ")[2].removesuffix(".")

    assert_values(corpus("bodies_broken"), place)
    assert place(b'{\n "title": "\xd0\xbf\xff"}') == "line 2, column 13 (no UTF-8)"


@pytest.mark.parametrize(
    ("body", "why"), [(b'{"a": -Infinity}', "-Infinity is no JSON"), (b"[" * 100_000, "nested too deep")]
)
def test_what_breaks_in_no_one_place_is_told_by_its_reason(body: bytes, why: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        parse(body)
    assert str(refused.value) == f"The body is not valid JSON in UTF-8 ({why})."


def test_the_number_of_values_is_limited_before_any_is_made() -> None:
    """A list of lists, one for each two bytes, would take some seventy times the body's size in memory."""
    assert len(parse(b"[" + b"1," * (MAX_VALUES - 2) + b"1]")) == MAX_VALUES - 1
    bodies = (b"[" + b"[]," * MAX_VALUES + b"[]]", b'{"a":' * MAX_VALUES, b'["\\"",' + b"1," * MAX_VALUES + b"1]")
    for body in bodies:
        tracemalloc.start()
        with pytest.raises(BodyTooLargeError, match="more than 200000 keys and values"):
            parse(body)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 5 * len(body)


@pytest.mark.parametrize("text", ['[{:,"', "\\", '\\"', "a,b: [c] {d}", "\\\\"])
def test_signs_within_texts_are_no_values(text: str) -> None:
    document = [text * MAX_VALUES, {text * 5: text * MAX_VALUES}]
    assert parse(json.dumps(document).encode()) == document
    with pytest.raises(UnreadableError):
        parse(json.dumps(document).encode()[:-10])


@pytest.mark.parametrize("innermost", [b"[1]", b"[]", b"{}"])
def test_depth_is_limited_and_the_limit_is_reachable(innermost: bytes) -> None:
    around = MAX_DEPTH - 1
    assert parse(b"[" * around + innermost + b"]" * around)
    with pytest.raises(UnreadableError, match="deeper than 64"):
        parse(b"[" * MAX_DEPTH + innermost + b"]" * MAX_DEPTH)


def test_what_cannot_be_stored_is_refused_by_name() -> None:
    def fault(body: str) -> tuple[str, str]:
        found = refused(body)
        json.dumps(found).encode()  # the answer itself can be encoded
        (only,) = found
        return only

    assert_values(corpus("unstorable"), fault, agrees=names)


def test_a_double_written_out_in_full_is_that_double() -> None:
    for double in (1e19, 1e22, -1e23, 1.7976931348623157e308):
        found = parse(json.dumps(int(Decimal(repr(double)))).encode())
        assert (found, type(found)) == (double, float)
    assert type(parse(b"9223372036854775807")) is int
    assert refused('{"n": 10000000000000000000001}'), "control: no double is written so"


def test_whole_surrogate_pairs_are_text() -> None:
    assert parse(rb'{"a": "\ud83d\ude00"}') == {"a": "😀"}


def test_a_flood_of_faults_is_cut() -> None:
    assert len(refused(json.dumps(["\0"] * 5_000))) <= 51


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(JSON)
def test_storable_json_comes_through_unchanged(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(UnreadableError, InvalidInputError):
        json.dumps(parse(body), allow_nan=False).encode()


def test_content_types() -> None:
    assert_verdicts(corpus("content_types"), is_json)


def test_every_error_of_the_domain_has_a_status() -> None:
    classes = [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, DomainError)]
    own = [item for item in classes if item is not DomainError]
    assert len(own) > 15
    assert {item.code for item in own} <= STATUS.keys()


def test_a_code_of_its_own_falls_back_to_the_class() -> None:
    assert status_of(ConflictError("d", code="something_new")) == 409
    assert status_of(DomainError("d")) == 500
    assert status_of(errors.SummarizerFailedError("d", code="empty_summary")) == 502
    assert status_of(errors.ModelFailedError("d", code="model_unavailable")) == 503


@pytest.mark.parametrize("kind", [errors.SummarizerFailedError, errors.ModelFailedError])
def test_what_ends_alike_until_something_is_changed_is_not_retryable(kind: type[errors.ModelWorkError]) -> None:
    told = {reason: problem_of(kind("d", extra={"reason": reason}), "r")["retryable"] for reason in errors.REMEDIES}
    assert told == dict.fromkeys(errors.REMEDIES, False)
    assert problem_of(kind("d", extra={"reason": "server_error"}), "r")["retryable"], "control: an outage passes"
    assert problem_of(kind("d"), "r")["retryable"], "control: nobody knows why"


def test_a_reason_is_told_with_what_has_to_change() -> None:
    assert "policy.anchor_share" in errors.full_reason("anchors_over_budget")
    assert errors.full_reason("server_error") == "server_error"


def test_what_a_provider_refuses_for_good_is_told_so() -> None:
    statuses = [400, 401, 403, 404, 413, 422]
    refusals = [unavailable(ModelHTTPError(status, "model", {"message": "no"})) for status in statuses]
    assert {one.reason for one in refusals} <= errors.REMEDIES.keys()
    passing = [unavailable(ModelHTTPError(status, "model", {"message": "no"})) for status in (408, 429, 500, 503)]
    assert not {one.reason for one in passing} & errors.REMEDIES.keys()


def test_extra_members_never_replace_the_standard_ones() -> None:
    error = errors.TooLargeError("big", extra={"limit": 10, "status": 1, "code": "x"})
    shown = problem_of(error, "r")
    assert (shown["limit"], shown["status"], shown["code"], shown["request_id"]) == (10, 413, "message_too_large", "r")


def test_an_unexpected_error_tells_nothing() -> None:
    assert "secret" not in json.dumps(problem_of(ValueError("secret"), "r"))


def test_a_kept_key_tells_keys_apart_and_nothing_of_them() -> None:
    kept = kept_key("my vault opens with kestrel")
    assert (len(kept), "kestrel" in kept) == (64, False)
    assert kept != kept_key("my vault opens with kestrels")


def test_fingerprints_tell_requests_apart() -> None:
    one = fingerprint("POST", "/a", b"{}")
    assert one == fingerprint("POST", "/a", b"{}")
    assert (
        len({one, fingerprint("PUT", "/a", b"{}"), fingerprint("POST", "/b", b"{}"), fingerprint("POST", "/a", b"")})
        == 4
    )


def test_a_listed_conversation_leaves_out_what_is_large() -> None:
    shown = present_conversation_summary(conversation_view()).model_dump()
    assert shown.keys().isdisjoint({"compressed_state", "policy", "scratchpad"})
    assert shown["context"]["tokens"] == sum(shown["context"]["breakdown"].values())


def test_times_are_shown_in_utc() -> None:
    assert json.loads(Message.model_validate(message()).model_dump_json())["created_at"] == "2026-11-20T09:30:00Z"


def test_messages_show_position_and_protection() -> None:
    shown = Message.model_validate(message(protected_reason="initial_objective"))
    assert (shown.turn, shown.is_protected, shown.protected_reason) == (0, True, "initial_objective")


def test_a_compaction_has_ratio_and_cost() -> None:
    shown = present_compaction(CompactionView(compaction=compaction(), summary="s", joined=True))
    assert (shown.ratio, shown.cost_usd, shown.summary, shown.joined) == (0.25, 0.5, "s", True)
    assert present_compaction(CompactionView(compaction=compaction(tokens_after=None))).ratio is None


def test_a_planned_compaction_has_no_id() -> None:
    shown = present_compaction(CompactionView(compaction=compaction(status="queued"), planned=True))
    assert (shown.id, shown.status, shown.conversation_id) == (None, "planned", CONVERSATION)


def test_draft_times_keep_their_moment() -> None:
    draft = MessageInput(role="user", content="c", created_at="2026-11-20T10:30:00+01:00").draft()
    assert draft.created_at == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
