"""Commands that show what became of something that was said: the search for it, the anchors, and the compactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Final, TypeVar

import typer

from app.cli.connecting import AsJson, Conversation, Key, Url, connected_client, conversation_id
from app.cli.screen import Screen
from app.cli.showing import print_found, role_words, word_in_language
from app.cli.terminal_language import text_of
from app.client import Anchor, Compaction, SearchHit
from app.core.model.anchors import AnchorStatus, AnchorType
from app.core.text.localization.catalogue import Catalogue

Item = TypeVar("Item")
_MAX_PAGE_SIZE: Final = 100
_NOTHING: Final = "–"


def search(
    conversation: Conversation,
    words: Annotated[
        list[str],
        typer.Argument(help="What to look for; a phrase in quotes of its own is found as it is.", metavar="WORDS"),
    ],
    limit: Annotated[int, typer.Option(min=1, help="How many messages, the best first.")] = 20,
    url: Url = None,
    key: Key = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Find messages by words, those that were folded too."""
    with connected_client(url, key) as client:
        hits = client.search(conversation_id(client, conversation), " ".join(words), page_size=_page_size(limit))
        _print_first(hits, limit, show_hits, as_json=as_json)


def anchors(
    conversation: Conversation,
    type_: Annotated[AnchorType | None, typer.Option("--type", help="Only those of this type.")] = None,
    status: Annotated[AnchorStatus | None, typer.Option(help="Only those of this status; `active` are served.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, in the order of their messages.")] = 100,
    url: Url = None,
    key: Key = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the passages that are kept word for word, and what became of them."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        listed = client.anchors(id_, type=type_, status=status, page_size=_page_size(limit))
        show = partial(show_anchors, are_all=type_ is None and status is None)
        _print_first(listed, limit, show, as_json=as_json)


def compactions(
    conversation: Conversation,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    url: Url = None,
    key: Key = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show when a conversation was folded, how far, and why not."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        listed = client.compactions(id_, order="desc", page_size=_page_size(limit))
        _print_first(listed, limit, show_compactions, as_json=as_json)


def show_hits(screen: Screen, hits: Sequence[SearchHit]) -> None:
    """Print the messages that a search found, the best first."""
    catalogue = screen.catalogue
    if not hits:
        screen.line(catalogue.text("cli.search.nothing"))
        return
    rows = [
        (
            str(one.seq),
            f"{one.created_at:%Y-%m-%d %H:%M}",
            role_words(one.role, catalogue),
            one.segment_id or _NOTHING,
            one.snippet,
        )
        for one in hits
    ]
    screen.table(_column_names(catalogue, "message", "date", "speaker", "segment", "text"), rows)


def show_anchors(screen: Screen, anchors: Sequence[Anchor], *, are_all: bool = True) -> None:
    """Print anchors in the order of their messages."""
    catalogue = screen.catalogue
    if not anchors:
        screen.line(catalogue.text("cli.anchors.nothing" if are_all else "cli.anchors.none_such"))
        return
    seqs = {one.id: one.original_position for one in anchors}
    rows = [
        (
            str(one.original_position),
            word_in_language("cli.anchors.type", one.type, catalogue),
            _status_words(one, seqs.get(one.superseded_by) if one.superseded_by else None, catalogue),
            _speaker_words(one, catalogue),
            one.content,
        )
        for one in anchors
    ]
    screen.table(_column_names(catalogue, "message", "type", "status", "speaker", "text"), rows)


def show_compactions(screen: Screen, compactions: Sequence[Compaction]) -> None:
    """Print one line for each compaction."""
    catalogue = screen.catalogue
    if not compactions:
        screen.line(catalogue.text("cli.compaction.none"))
        return
    rows = [
        (
            f"{one.requested_at:%Y-%m-%d %H:%M}",
            word_in_language("trigger", one.trigger, catalogue),
            word_in_language("status", one.status, catalogue),
            _NOTHING if one.from_seq is None else f"{one.from_seq}–{one.to_seq}",
            f"{_number(one.tokens_before, catalogue)} → {_number(one.tokens_after, catalogue)}",
            _NOTHING if one.duration_ms is None else catalogue.number(one.duration_ms / 1000, 1),
            _NOTHING if one.state_version_after is None else str(one.state_version_after),
            word_in_language("reason", one.reason or _NOTHING, catalogue),
        )
        for one in compactions
    ]
    columns = ("date", "trigger", "status", "messages", "tokens", "seconds", "version", "reason")
    screen.table(_column_names(catalogue, *columns), rows)


def _status_words(anchor: Anchor, superseded_by: int | None, catalogue: Catalogue) -> str:
    status = word_in_language("cli.anchors.status", anchor.status, catalogue)
    if superseded_by is not None:
        return catalogue.text("cli.anchors.by", status=status, seq=str(superseded_by))
    is_chosen = (anchor.status, anchor.proposed_by) == ("active", "user")
    return catalogue.text("cli.anchors.chosen", status=status) if is_chosen else status


def _speaker_words(anchor: Anchor, catalogue: Catalogue) -> str:
    speaker = role_words(anchor.speaker, catalogue)
    return catalogue.text("cli.anchors.pasted", speaker=speaker) if anchor.pasted else speaker


def _column_names(catalogue: Catalogue, *names: str) -> Sequence[str]:
    return [catalogue.text(f"cli.columns.{name}") for name in names]


def _number(value: int | None, catalogue: Catalogue) -> str:
    return _NOTHING if value is None else catalogue.number(value)


def _print_first(
    listed: Iterable[Item], limit: int, show: Callable[[Screen, Sequence[Item]], None], *, as_json: bool
) -> None:
    """Print at most ``limit`` items, and say if there are more."""
    found = list(islice(listed, limit + 1))
    print_found(found[:limit], show, as_json=as_json)
    if len(found) > limit and not as_json:
        Screen().line((text_of("show.more_found"), "yellow"))


def _page_size(limit: int) -> int:
    return min(limit + 1, _MAX_PAGE_SIZE)
