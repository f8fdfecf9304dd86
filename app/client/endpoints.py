"""Every endpoint as a function that describes its request. Arguments that are ``None`` or not given are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, TypedDict, TypeVar, Unpack
from urllib.parse import quote

from . import resources as res
from .calls import (
    Call,
    Id,
    ListCall,
    any_json,
    change,
    get,
    ignore_body,
    post,
    raw_body,
    resource_reader,
    set_fields,
    text,
)
from .retrying import Retrying
from .sse import EventStream, FollowedReply, ReplyStream

Item = TypeVar("Item")
Order = Literal["asc", "desc"]
Format = Literal["plain", "openai", "gemini", "anthropic"]
LevelName = Literal["full", "detailed", "brief", "tags"]
Body = Mapping[str, Any]


class NewConversation(TypedDict, total=False):
    """The fields of a new conversation."""

    title: str | None
    user_id: str | None
    locale: str
    system_prompt: str
    preset: str
    preset_version: int
    policy: Body
    scratchpad: Body
    metadata: Body


class ConversationChanges(TypedDict, total=False):
    """The fields that can be changed; ``None`` is a value."""

    title: str | None
    locale: str
    system_prompt: str
    preset: str
    policy: Body
    scratchpad: Body
    metadata: Body


class NewMessage(TypedDict, total=False):
    """The fields of a message besides its role and content."""

    parts: Sequence[Body]
    event_type: str
    metadata: Body
    created_at: datetime | str
    model: str
    usage: Body


class Again(TypedDict, total=False):
    """How the last reply is made again."""

    model: str
    recall: bool
    passages: Sequence[Body]
    expected_last_message_id: Id


class Turn(Again, total=False):
    """How a message is answered."""

    event_type: str
    utc_offset: int
    parts: Sequence[Body]
    tool_results: Sequence[Body]
    instructions: str
    tools: Sequence[Body]
    tool_choice: str | Body
    parallel_tool_calls: bool
    response_format: Body
    temperature: float
    top_p: float
    max_tokens: int
    stop: Sequence[str]
    reasoning_effort: str
    seed: int
    frequency_penalty: float
    presence_penalty: float


class CompactOptions(TypedDict, total=False):
    """What a manual compaction does."""

    focus: str
    up_to_message_id: Id
    keep_tail_messages: int
    dry_run: bool
    wait: bool


class ContextOptions(TypedDict, total=False):
    """What a context contains."""

    query: str
    passages: Sequence[Body]
    compact: Literal["never", "if_needed"]
    format: Format
    sections: Body


def create_conversation(
    *, idempotency_key: str | None = None, **fields: Unpack[NewConversation]
) -> Call[res.Conversation]:
    """Begin a conversation."""
    return post("/conversations", resource_reader(res.Conversation), fields, key=idempotency_key)


def conversation(conversation_id: Id) -> Call[res.Conversation]:
    """One conversation, with its policy and its state."""
    return get(_path(conversation_id), resource_reader(res.Conversation))


def conversations(
    *, user_id: str | None = None, order: Order | None = None, page_size: int | None = None
) -> ListCall[res.ConversationSummary]:
    """Every conversation, by default the newest first."""
    return _list("/conversations", res.Page[res.ConversationSummary], user_id=user_id, order=order, limit=page_size)


def change_conversation(
    conversation_id: Id, *, if_match: int | None = None, **changes: Unpack[ConversationChanges]
) -> Call[res.Conversation]:
    """Change the given fields; with ``if_match`` only if the state still has that version."""
    return _with_if_match(change("PATCH", _path(conversation_id), resource_reader(res.Conversation), changes), if_match)


def delete_conversation(conversation_id: Id) -> Call[None]:
    """Delete a conversation with everything derived from it."""
    return change("DELETE", _path(conversation_id), ignore_body)


def append(
    conversation_id: Id,
    role: str,
    content: str = "",
    *,
    expected_last_message_id: Id | None = None,
    idempotency_key: str | None = None,
    **fields: Unpack[NewMessage],
) -> Call[res.Message]:
    """Append a message, without a reply."""
    body = {"role": role, "content": content, **fields, **set_fields(expected_last_message_id=expected_last_message_id)}
    return post(_path(conversation_id, "messages"), resource_reader(res.Message), body, key=idempotency_key)


def append_many(
    conversation_id: Id,
    messages: Sequence[Body],
    *,
    expected_last_message_id: Id | None = None,
    idempotency_key: str | None = None,
) -> Call[list[res.Message]]:
    """Append up to 1 000 messages, either all or none."""
    body = {"messages": list(messages), **set_fields(expected_last_message_id=expected_last_message_id)}
    return post(_path(conversation_id, "messages", "batch"), _items_reader(res.Message), body, key=idempotency_key)


def messages(conversation_id: Id, *, order: Order | None = None, page_size: int | None = None) -> ListCall[res.Message]:
    """The full history, never affected by compaction."""
    return _list(_path(conversation_id, "messages"), res.Page[res.Message], order=order, limit=page_size)


def erase_message(conversation_id: Id, message_id: Id) -> Call[None]:
    """Erase a message from the history and from everything derived."""
    return change("DELETE", _path(conversation_id, "messages", message_id), ignore_body)


def pin_message(conversation_id: Id, message_id: Id) -> Call[res.Message]:
    """Pin a message, so that it is served verbatim."""
    return change("PUT", _path(conversation_id, "messages", message_id, "pin"), resource_reader(res.Message))


def unpin_message(conversation_id: Id, message_id: Id) -> Call[res.Message]:
    """Remove a pin."""
    return change("DELETE", _path(conversation_id, "messages", message_id, "pin"), resource_reader(res.Message))


def attach_file(
    conversation_id: Id,
    data: bytes | str,
    *,
    name: str,
    media_type: str,
    tokens: int | None = None,
    idempotency_key: str | None = None,
) -> Call[res.File]:
    """Attach a file. Every context contains it whole, before all messages.

    ``data`` are its bytes or its text. ``tokens`` is the size of audio or video in tokens, if its bytes do not show it.
    """
    sent = data.encode() if isinstance(data, str) else data
    call = post(_path(conversation_id, "files"), resource_reader(res.File), key=idempotency_key)
    return replace(call, body=sent, params=set_fields(name=name, tokens=tokens)).with_headers(Content_Type=media_type)


def files(conversation_id: Id, *, order: Order | None = None, page_size: int | None = None) -> ListCall[res.File]:
    """The files of a conversation, in the order in which they were attached."""
    return _list(_path(conversation_id, "files"), res.Page[res.File], order=order, limit=page_size)


def file(conversation_id: Id, file_id: Id) -> Call[res.File]:
    """One file, without its bytes."""
    return get(_path(conversation_id, "files", file_id), resource_reader(res.File))


def file_content(conversation_id: Id, file_id: Id) -> Call[bytes]:
    """The bytes of a file."""
    return get(_path(conversation_id, "files", file_id, "content"), raw_body).with_headers(Accept="*/*")


def remove_file(conversation_id: Id, file_id: Id) -> Call[None]:
    """Remove a file from every context, and the copy that a provider keeps."""
    return change("DELETE", _path(conversation_id, "files", file_id), ignore_body)


def chat(
    conversation_id: Id, content: str | None = None, *, idempotency_key: str | None = None, **turn: Unpack[Turn]
) -> Call[res.ChatResult]:
    """Send a message, or ``tool_results``, and get the reply; without either, the message that waits is answered.

    ``tools`` are your own: a turn in which the model calls one has the status ``requires_action`` and ``open_calls``.
    """
    return post(
        _path(conversation_id, "chat"),
        resource_reader(res.ChatResult),
        {**set_fields(content=content), **turn},
        key=idempotency_key,
    )


def chat_stream(
    conversation_id: Id, content: str | None = None, *, idempotency_key: str | None = None, **turn: Unpack[Turn]
) -> Callable[[Retrying], ReplyStream]:
    """Send a message and read the reply as it comes; the last event has the whole result.

    Raises the error that the turn failed with.
    """
    call = chat(conversation_id, content, idempotency_key=idempotency_key, **turn)
    return lambda retrying: ReplyStream(call, retrying)


def follow_turn(conversation_id: Id) -> Callable[[Retrying], FollowedReply]:
    """The running turn from its beginning, in whichever process it runs; no events if none runs.

    If the connection breaks and the turn ends meanwhile, there is no last event; the reply is in the history.
    """
    call = get(_path(conversation_id, "chat", "stream"), ignore_body)
    return lambda retrying: FollowedReply(call, retrying)


def regenerate(
    conversation_id: Id, *, idempotency_key: str | None = None, **turn: Unpack[Again]
) -> Call[res.ChatResult]:
    """Make the last reply again; the first one stays in the history as ``superseded``."""
    return post(
        _path(conversation_id, "chat", "regenerate"), resource_reader(res.ChatResult), turn, key=idempotency_key
    )


def regenerate_stream(
    conversation_id: Id, *, idempotency_key: str | None = None, **turn: Unpack[Again]
) -> Callable[[Retrying], ReplyStream]:
    """Make the last reply again and read it as it comes."""
    call = regenerate(conversation_id, idempotency_key=idempotency_key, **turn)
    return lambda retrying: ReplyStream(call, retrying)


def interrupt(conversation_id: Id, *, idempotency_key: str | None = None) -> Call[res.Interruption]:
    """Stop the running reply; what was said so far is kept."""
    return post(_path(conversation_id, "chat", "interrupt"), resource_reader(res.Interruption), key=idempotency_key)


def compact(
    conversation_id: Id, *, idempotency_key: str | None = None, **options: Unpack[CompactOptions]
) -> Call[res.Compaction]:
    """Compact now, or with ``wait=False`` in the worker."""
    return post(_path(conversation_id, "compact"), resource_reader(res.Compaction), options, key=idempotency_key)


def compactions(
    conversation_id: Id, *, order: Order | None = None, page_size: int | None = None
) -> ListCall[res.Compaction]:
    """The compactions of a conversation."""
    return _list(_path(conversation_id, "compactions"), res.Page[res.Compaction], order=order, limit=page_size)


def continuity(
    conversation_id: Id, *, order: Order | None = None, page_size: int | None = None
) -> ListCall[res.CompactionContinuity]:
    """What the conversation could still answer after each compaction that has a continuity score."""
    return _list(_path(conversation_id, "continuity"), res.Page[res.CompactionContinuity], order=order, limit=page_size)


def verifications(
    conversation_id: Id, *, order: Order | None = None, page_size: int | None = None
) -> ListCall[res.Verification]:
    """The verifications of a conversation's state by a model."""
    return _list(_path(conversation_id, "verifications"), res.Page[res.Verification], order=order, limit=page_size)


def compaction(compaction_id: Id) -> Call[res.Compaction]:
    """One compaction."""
    return get(f"/compactions/{_step(compaction_id)}", resource_reader(res.Compaction))


def all_compactions(
    *, status: str | None = None, order: Order | None = None, page_size: int | None = None
) -> ListCall[res.Compaction]:
    """The compactions of all conversations; needs the scope ``admin``."""
    return _list("/compactions", res.Page[res.Compaction], status=status, order=order, limit=page_size)


def release(conversation_id: Id, *, idempotency_key: str | None = None) -> Call[res.Conversation]:
    """Release a conversation that was set aside; needs the scope ``admin``."""
    return post(_path(conversation_id, "release"), resource_reader(res.Conversation), key=idempotency_key)


def examine(
    conversation_id: Id, *, mend: bool = False, if_match: int | None = None, idempotency_key: str | None = None
) -> Call[res.Examination]:
    """Find what earlier checks damaged in the state that is served; with ``mend``, code repairs what it can."""
    call = post(
        _path(conversation_id, "examination"), resource_reader(res.Examination), {"mend": mend}, key=idempotency_key
    )
    return _with_if_match(call, if_match)


def retry_compaction(compaction_id: Id, *, idempotency_key: str | None = None) -> Call[res.Compaction]:
    """Queue a failed compaction once more; needs the scope ``admin``."""
    return post(f"/compactions/{_step(compaction_id)}/retry", resource_reader(res.Compaction), key=idempotency_key)


def restore(
    conversation_id: Id, state_version: int, *, if_match: int | None = None, idempotency_key: str | None = None
) -> Call[res.Conversation]:
    """Restore an earlier state as a new version."""
    body = {"state_version": state_version}
    call = post(_path(conversation_id, "restore"), resource_reader(res.Conversation), body, key=idempotency_key)
    return _with_if_match(call, if_match)


def states(
    conversation_id: Id, *, order: Order | None = None, page_size: int | None = None
) -> ListCall[res.StateVersion]:
    """Every version of the state."""
    return _list(_path(conversation_id, "states"), res.Page[res.StateVersion], order=order, limit=page_size)


def compare_states(conversation_id: Id, a: int, b: int) -> Call[res.StateDifference]:
    """The differences between version ``a`` and version ``b``."""
    return get(_path(conversation_id, "states"), resource_reader(res.StateDifference), a=a, b=b)


def look_at_context(
    conversation_id: Id,
    budget: int | None = None,
    *,
    query: str | None = None,
    format: Format | None = None,  # noqa: A002
) -> Call[res.Context]:
    """The context that a model would be sent. Nothing is compacted, and nothing is recorded."""
    return get(
        _path(conversation_id, "context"), resource_reader(res.Context), budget=budget, query=query, format=format
    )


def context(
    conversation_id: Id,
    budget: int | None = None,
    *,
    idempotency_key: str | None = None,
    **options: Unpack[ContextOptions],
) -> Call[res.Context]:
    """A context for a model of your own."""
    body = {**set_fields(budget=budget), **options}
    return post(_path(conversation_id, "context"), resource_reader(res.Context), body, key=idempotency_key)


def usage(conversation_id: Id) -> Call[res.Gauge]:
    """How full the context is."""
    return get(_path(conversation_id, "usage"), resource_reader(res.Gauge))


def segments(
    conversation_id: Id,
    *,
    level: Literal["detailed", "brief", "tags"] | None = None,
    order: Order | None = None,
    page_size: int | None = None,
) -> ListCall[res.Segment]:
    """The segments of the current state version, each at that level or the nearest one that it has."""
    path = _path(conversation_id, "segments")
    return _list(path, res.Page[res.Segment], level=level, order=order, limit=page_size)


def segment(
    conversation_id: Id,
    segment_id: str,
    level: LevelName | None = None,
    *,
    max_tokens: int | None = None,
    after: str | None = None,
) -> Call[res.Segment]:
    """A segment at a level of detail; a page of it if it is large."""
    path = _path(conversation_id, "segments", segment_id)
    return get(path, resource_reader(res.Segment), level=level, max_tokens=max_tokens, after=after)


def make_level(
    conversation_id: Id,
    level: LevelName,
    *,
    segment_id: str | None = None,
    from_seq: int | None = None,
    to_seq: int | None = None,
    idempotency_key: str | None = None,
) -> Call[res.Segment]:
    """Make a level of a segment now; the segment is given by its id or its range."""
    body = set_fields(level=level, segment_id=segment_id, from_seq=from_seq, to_seq=to_seq)
    return post(_path(conversation_id, "segments"), resource_reader(res.Segment), body, key=idempotency_key)


def anchors(
    conversation_id: Id,
    *,
    type: str | None = None,  # noqa: A002 - the contract's name
    status: str | None = None,
    order: Order | None = None,
    page_size: int | None = None,
) -> ListCall[res.Anchor]:
    """The anchors of a conversation."""
    path = _path(conversation_id, "anchors")
    return _list(path, res.Page[res.Anchor], type=type, status=status, order=order, limit=page_size)


def set_anchor_status(conversation_id: Id, anchor_id: Id, status: str) -> Call[res.Anchor]:
    """Set the status of an anchor."""
    return change(
        "PATCH", _path(conversation_id, "anchors", anchor_id), resource_reader(res.Anchor), {"status": status}
    )


def search(conversation_id: Id, q: str, *, page_size: int | None = None) -> ListCall[res.SearchHit]:
    """The original messages that match a query, the best first."""
    return _list(_path(conversation_id, "search"), res.Page[res.SearchHit], q=q, limit=page_size)


def stats(conversation_id: Id | None = None, *, since: datetime | None = None) -> Call[res.Stats]:
    """The measures of a conversation, or of all conversations; for all, ``since`` leaves out what ended before."""
    path = "/stats" if conversation_id is None else _path(conversation_id, "stats")
    return get(path, resource_reader(res.Stats), since=since)


def export(conversation_id: Id) -> Call[Any]:
    """The full history with states and anchors, as JSON."""
    return get(_path(conversation_id, "export"), any_json, format="json")


def export_markdown(conversation_id: Id) -> Call[str]:
    """What was said, as Markdown."""
    return get(_path(conversation_id, "export"), text, format="markdown").with_headers(Accept="text/markdown")


def events(conversation_id: Id, *, after: int | str | None = None) -> Callable[[Retrying], EventStream]:
    """Every event after the given one, as it happens.

    After a broken connection the stream continues where it stopped.
    """
    call = get(_path(conversation_id, "events"), ignore_body)
    return lambda retrying: EventStream(call, retrying, after=after)


def presets() -> Call[list[res.Preset]]:
    """The presets with their policies."""
    return get("/presets", _items_reader(res.Preset))


def count_tokens(
    text: str | None = None, *, messages: Sequence[Body] | None = None, idempotency_key: str | None = None
) -> Call[res.TokenCount]:
    """How many tokens a text, or messages, would have."""
    body = set_fields(text=text, messages=None if messages is None else list(messages))
    return post("/tokens/count", resource_reader(res.TokenCount), body, key=idempotency_key)


def limits() -> Call[res.KeyLimits]:
    """The limits of the key and of its tenant, and how much of each is left."""
    return get("/limits", resource_reader(res.KeyLimits))


def audit(*, order: Order | None = None, page_size: int | None = None) -> ListCall[res.AuditEntry]:
    """Who did what; needs the scope ``admin``."""
    return _list("/audit", res.Page[res.AuditEntry], order=order, limit=page_size)


def erase_user(user_id: str) -> Call[res.Erasure]:
    """Begin to delete every conversation of an end user; needs the scope ``admin``."""
    return change("DELETE", f"/users/{_step(user_id)}", resource_reader(res.Erasure))


def health() -> Call[Any]:
    """Whether the process answers."""
    return get("/healthz", any_json)


def readiness() -> Call[Any]:
    """The state of what the service depends on."""
    return get("/readyz", any_json)


def _path(conversation_id: Id, *steps: object) -> str:
    return "/".join(["/conversations", *map(_step, (conversation_id, *steps))])


def _step(id_: object) -> str:
    step = quote(str(id_), safe="")
    if step in {".", ".."}:  # it would be taken for a step within the path, and lead to something else
        raise ValueError(f"{step!r} is no id")
    return step


def _list(path: str, page: type[res.Page[Item]], **params: Any) -> ListCall[Item]:
    return ListCall(first=get(path, resource_reader(page), **params))


def _items_reader(resource: type[Item]) -> Callable[[bytes], list[Item]]:
    items = res.Items[resource]  # type: ignore[valid-type]
    return lambda body: list(items.model_validate_json(body).data)


def _with_if_match(call: Call[Item], if_match: int | None) -> Call[Item]:
    return call if if_match is None else call.with_headers(If_Match=f'"{if_match}"')
