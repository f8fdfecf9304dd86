"""``throughline files``: attach, list and remove the files of a conversation."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import typer

from app.cli.complaints import ComplaintError, errors_as_one_line
from app.cli.connecting import AsJson, Conversation, Key, Url, connected_client, conversation_id
from app.cli.screen import Screen, one_line
from app.cli.showing import print_found
from app.cli.terminal_language import terminal_catalogue, text_of
from app.client import File
from app.core.text.file_types import media_type_of
from app.core.text.file_types import text_of as text_of_file

files = typer.Typer(help="The files of a conversation.", no_args_is_help=True)

PLAIN_TEXT: Final = "text/plain"

FileId = Annotated[str, typer.Argument(help="Of the file, as `list` shows it.", metavar="FILE_ID")]


@files.command()
def add(
    conversation: Conversation,
    file: Annotated[Path, typer.Argument(help="What is attached.")],
    media_type: Annotated[str | None, typer.Option("--type", help="Unset: by the file's ending.")] = None,
    tokens: Annotated[int | None, typer.Option(help="What a sound or a film weighs.")] = None,
    url: Url = None,
    key: Key = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Attach a file. Every context contains it whole, before all messages."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ComplaintError(text_of("complaint.cannot_read", file=str(file), why=str(error.strerror))) from None
        type_ = media_type or type_of(file.name, data)
        attached = client.attach_file(id_, data, name=file.name, media_type=type_, tokens=tokens)
        print_found([attached], _print_files, as_json=as_json)


@files.command("list")
def list_files(conversation: Conversation, url: Url = None, key: Key = None, *, as_json: AsJson = False) -> None:
    """Show the files of a conversation, in the order of its contexts."""
    with connected_client(url, key) as client:
        found = list(client.files(conversation_id(client, conversation), page_size=100))
        print_found(found, _print_files, as_json=as_json)


@files.command()
def remove(conversation: Conversation, file_id: FileId, url: Url = None, key: Key = None) -> None:
    """Remove a file from every context, and the copy that a provider keeps."""
    with errors_as_one_line():
        _check_file_id(file_id)
    with connected_client(url, key) as client:
        client.remove_file(conversation_id(client, conversation), file_id)
        Screen(terminal_catalogue()).line(text_of("file_removed", id=file_id))


def type_of(name: str, data: bytes) -> str:
    """The media type of a file by its ending; ``text/plain`` for a text whose own type cannot be attached."""
    by_ending = mimetypes.guess_type(name)[0]
    if by_ending is None or (not media_type_of(by_ending) and text_of_file(data) is not None):
        return PLAIN_TEXT
    return by_ending


def _check_file_id(file_id: str) -> None:
    # Checked here, since an error of the service would name a path.
    try:
        UUID(file_id)
    except ValueError:
        raise ComplaintError(text_of("complaint.no_file", given=repr(file_id))) from None


def _print_files(screen: Screen, found: list[File]) -> None:
    if not found:
        screen.line(text_of("no_files"))
    for one in found:
        size = text_of("file_size", bytes=one.bytes, tokens=one.tokens)
        screen.line(f"{one.id}  {one.media_type}  {size}  {one_line(one.name)}")
