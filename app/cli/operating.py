"""``throughline conversations``: what an operator does with conversations."""

from __future__ import annotations

import typer

from app.cli.connecting import AsJson, Conversation, Key, Url, connected_client, conversation_id
from app.cli.showing import print_found
from app.cli.terminal_language import text_of

conversations = typer.Typer(help="Operate on conversations.", no_args_is_help=True)


@conversations.callback()
def _group() -> None:
    """Keep the command's own name although the group has only one command."""


@conversations.command()
def release(conversation: Conversation, url: Url = None, key: Key = None, *, as_json: AsJson = False) -> None:
    """Release a conversation that was set aside because processes ended during work on it (scope admin)."""
    with connected_client(url, key) as client:
        released = client.release(conversation_id(client, conversation))
        print_found(released, lambda screen, one: screen.line(text_of("released", id=str(one.id))), as_json=as_json)
