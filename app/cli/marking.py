"""Commands that decide what is kept word for word: pins of messages, and the status of anchors."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.complaints import ComplaintError
from app.cli.connecting import AsJson, Conversation, Key, Url, connected_client, conversation_id
from app.cli.screen import Screen
from app.cli.showing import print_found
from app.cli.terminal_language import text_of
from app.cli.tracing import show_anchors
from app.client import Anchor, Message, Throughline
from app.core.model.anchors import AnchorStatus

_PAGE_SIZE = 100

Number = Annotated[
    int,
    typer.Argument(
        min=1, help="The message's number, as `search`, `anchors` and `context` show it.", metavar="MESSAGE"
    ),
]


def pin(
    conversation: Conversation, message: Number, url: Url = None, key: Key = None, *, as_json: AsJson = False
) -> None:
    """Pin a message: it is in every context, word for word."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        pinned = client.pin_message(id_, _message(client, id_, message).id)
        print_found(pinned, _show_pinned, as_json=as_json)


def unpin(
    conversation: Conversation, message: Number, url: Url = None, key: Key = None, *, as_json: AsJson = False
) -> None:
    """Remove the pin of a message: it may be folded."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        unpinned = client.unpin_message(id_, _message(client, id_, message).id)
        print_found(unpinned, _show_unpinned, as_json=as_json)


def set_anchor(
    conversation: Conversation,
    message: Number,
    status: Annotated[
        AnchorStatus,
        typer.Argument(help="What became of it; `active`: it stays, whatever a model says.", metavar="STATUS"),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Some of its words, if the message has several anchors.", metavar="[WORDS]..."),
    ] = None,
    url: Url = None,
    key: Key = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Set what became of a passage that is kept word for word; only `active` ones are served."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        anchor = _anchor(client, id_, message, " ".join(words or ()))
        changed = client.set_anchor_status(id_, anchor.id, status)
        print_found([changed], show_anchors, as_json=as_json)


def _message(client: Throughline, id_: str, number: int) -> Message:
    newest = next(client.messages(id_, order="desc", page_size=1), None)
    if newest is None or newest.seq < number:
        raise ComplaintError(
            text_of("complaint.no_message", number=str(number), newest=str(newest.seq if newest else 0))
        )
    # A list is read from the nearer end.
    listed = client.messages(id_, order="asc" if number <= newest.seq // 2 else "desc", page_size=_PAGE_SIZE)
    return next(one for one in listed if one.seq == number)


def _anchor(client: Throughline, id_: str, number: int, words: str) -> Anchor:
    listed = client.anchors(id_, page_size=_PAGE_SIZE)
    found = [one for one in listed if one.original_position == number and words.lower() in one.content.lower()]
    if not found:
        raise ComplaintError(text_of("complaint.no_anchor", number=str(number)))
    if len(found) > 1:
        raise ComplaintError(text_of("complaint.which_anchor", number=str(number), count=str(len(found))))
    return found[0]


def _show_pinned(screen: Screen, message: Message) -> None:
    screen.line(screen.catalogue.text("cli.pinned", seq=str(message.seq)))


def _show_unpinned(screen: Screen, message: Message) -> None:
    screen.line(screen.catalogue.text("cli.unpinned", seq=str(message.seq)))
