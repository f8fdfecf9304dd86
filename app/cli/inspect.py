"""Commands that show a conversation, compact it, or restore an earlier state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Annotated, Any, cast

import typer

from app.cli.complaints import ComplaintError
from app.cli.connecting import AsJson, Conversation, Key, Url, connected_client, conversation_id
from app.cli.screen import Screen
from app.cli.showing import (
    print_found,
    show_compaction,
    show_context,
    show_continuity,
    show_difference,
    show_list,
    show_messages,
    show_repairs,
    show_segment,
    show_state,
    show_stats,
)
from app.cli.terminal_language import terminal_catalogue, text_of
from app.client import NotFoundError, Segment, StateVersion, Throughline
from app.client.endpoints import CompactOptions, Format, LevelName
from app.core.model.segments import NAME_BY_LEVEL
from app.core.segments.markers import parse_marker
from app.core.text.localization.catalogue import Catalogue


def list_conversations(
    url: Url = None,
    key: Key = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """List conversations, the one with the newest message first."""
    with connected_client(url, key) as client:
        found = list(islice(client.conversations(order="desc", page_size=min(limit, 100)), limit))
        print_found(found, show_list, as_json=as_json)


def compact(
    conversation: Conversation,
    focus: Annotated[str | None, typer.Option(help="What to pay attention to.")] = None,
    keep_tail: Annotated[int | None, typer.Option(min=0, help="Newest messages to leave as they are.")] = None,
    url: Url = None,
    key: Key = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be folded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fold a conversation into its state now, and show the summary."""
    options_or_none = {"focus": focus, "keep_tail_messages": keep_tail, "dry_run": dry_run or None}
    options = cast("CompactOptions", {name: value for name, value in options_or_none.items() if value is not None})
    with connected_client(url, key) as client:
        row = client.compact(conversation_id(client, conversation), **options)
        print_found(row, show_compaction, as_json=as_json)


def context(
    conversation: Conversation,
    budget: Annotated[int | None, typer.Option(min=1, help="Tokens after the system prompt and files.")] = None,
    query: Annotated[str | None, typer.Option(help="A question, to recall what it needs.")] = None,
    format_: Annotated[
        Format | None, typer.Option("--format", help="Print the messages as JSON, as this provider takes them.")
    ] = None,
    url: Url = None,
    key: Key = None,
    *,
    full: Annotated[bool, typer.Option("--full", help="With the texts.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a model would be sent now; nothing is compacted."""
    with connected_client(url, key) as client:
        found = client.look_at_context(conversation_id(client, conversation), budget, query=query, format=format_)
        screen = Screen(terminal_catalogue())
        if as_json:
            screen.json(found)
        elif format_ is not None:
            screen.json(_system_and_messages(found.system, found.messages))
        else:
            show_context(screen, found)
            if full:
                show_messages(screen, found)


def state(
    conversation: Conversation,
    version: Annotated[int | None, typer.Option(min=1, help="An earlier version.")] = None,
    diff: Annotated[tuple[int, int] | None, typer.Option(help="What changed from version A to version B.")] = None,
    url: Url = None,
    key: Key = None,
    *,
    repairs: Annotated[bool, typer.Option("--repairs", help="What was done to the model's summary.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the state that stands for the folded messages, with the messages that each entry came from."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        if diff is not None:
            if min(diff) < 1:
                raise ComplaintError(text_of("complaint.diff_from"))
            with _missing_version_named(client, id_, *diff):
                difference = client.compare_states(id_, *diff)
            print_found(difference, show_difference, as_json=as_json)
            return
        newest = newest_state(client, id_)
        if newest is None:
            raise ComplaintError(text_of("no_state"))
        found = newest if version is None or version == newest.version else _state_version(client, id_, version)
        if repairs:
            print_found(found.repairs, partial(show_repairs, made_by=found.made_by), as_json=as_json)
        else:
            print_found(found, partial(show_state, newest=newest.version), as_json=as_json)


def restore_state(conversation: str, version: int, url: str | None, key: str | None) -> None:
    """Restore an earlier state as a new version; no message is changed."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        with _missing_version_named(client, id_, version):
            found = client.restore(id_, version)
        key = "show.restored" if version else "show.restored_nothing"
        Screen().line(text_of(key, now=str(found.state_version), version=str(version)))


def expand(
    conversation: Conversation,
    segment: Annotated[str, typer.Argument(help="A segment's id, or a marker as it stands in a context.")],
    level: Annotated[LevelName | None, typer.Option(help="How much; unset: the marker's level, or everything.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="The most to show.")] = None,
    url: Url = None,
    key: Key = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the messages that a segment stands for, or a shorter text of them."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        found = expanded_segment(client, id_, segment, level, terminal_catalogue(), max_tokens=max_tokens)
        print_found(found, show_segment, as_json=as_json)
        if found.next_cursor and not as_json:
            Screen().line((text_of("show.more"), "yellow"))


def stats(
    conversation: Annotated[str | None, typer.Argument(help="Its id, or `last`; unset: all.", metavar="[ID]")] = None,
    url: Url = None,
    key: Key = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what compactions did, saved and cost: of one conversation, or of all."""
    with connected_client(url, key, language=terminal_catalogue().language) as client:
        found = client.stats(None if conversation is None else conversation_id(client, conversation))
        print_found(found, show_stats, as_json=as_json)


def continuity(conversation: Conversation, url: Url = None, key: Key = None, *, as_json: AsJson = False) -> None:
    """Show what could still be answered after each compaction, by questions that were made before it."""
    with connected_client(url, key) as client:
        found = list(islice(client.continuity(conversation_id(client, conversation), order="desc", page_size=100), 100))
        print_found(found, show_continuity, as_json=as_json)


def newest_state(client: Throughline, id_: str) -> StateVersion | None:
    """The version that is served. A version number never decreases."""
    return next(client.states(id_, order="desc", page_size=1), None)


def expanded_segment(
    client: Throughline,
    id_: str,
    segment: str,
    level: LevelName | None,
    catalogue: Catalogue,
    *,
    max_tokens: int | None = None,
) -> Segment:
    """A segment by its id or its marker: all pages of it, or as many as a limit allows.

    Raises:
        ComplaintError: The text is neither an id nor a marker, or there is no such segment.
    """
    marker = parse_marker(segment)
    if marker is None:
        raise ComplaintError(catalogue.text("cli.complaint.no_marker", given=repr(segment)))
    wanted = level or (NAME_BY_LEVEL[marker.level] if "→" in segment or "->" in segment else "full")
    try:
        found = client.segment(id_, marker.segment_id, wanted, max_tokens=max_tokens)
    except NotFoundError:
        client.conversation(id_)  # if that is missing, its own error says so
        raise ComplaintError(catalogue.text("cli.complaint.no_segment", given=repr(marker.segment_id))) from None
    while max_tokens is None and found.next_cursor:
        following = client.segment(id_, marker.segment_id, wanted, after=found.next_cursor)
        found = found.joined(following).model_copy(update={"next_cursor": following.next_cursor})
    return found


def _state_version(client: Throughline, id_: str, number: int) -> StateVersion:
    found = next((one for one in client.states(id_, order="desc", page_size=100) if one.version == number), None)
    if found is None:
        raise _no_version(number, *_first_and_newest(client, id_))
    return found


@contextmanager
def _missing_version_named(client: Throughline, id_: str, *wanted: int) -> Iterator[None]:
    """Say which version there is not, and which there are, if the service finds none of that number."""
    try:
        yield
    except NotFoundError:
        first, newest = _first_and_newest(client, id_)
        for number in wanted:
            if not first <= number <= newest:
                raise _no_version(number, first, newest) from None
        raise


def _first_and_newest(client: Throughline, id_: str) -> tuple[int, int]:
    first, newest = next(client.states(id_, order="asc", page_size=1), None), newest_state(client, id_)
    if first is None or newest is None:
        raise ComplaintError(text_of("no_state"))
    return first.version, newest.version


def _no_version(number: int, first: int, newest: int) -> ComplaintError:
    given = {"version": str(number), "first": str(first), "newest": str(newest)}
    return ComplaintError(text_of("complaint.no_version", **given))


def _system_and_messages(system: str | None, messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {"messages": messages} if system is None else {"system": system, "messages": messages}
