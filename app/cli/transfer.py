"""``throughline import`` and ``throughline export``: read whole conversations in, and write them out."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import typer

from app.cli.atomic_files import atomic_file, is_special_file
from app.cli.complaints import ComplaintError, complain, words_of
from app.cli.connecting import AsJson, Conversation, Key, Url, connected_client, conversation_id
from app.cli.import_files import Source, open_source
from app.cli.import_formats import Imported
from app.cli.screen import Screen, one_line, progress_on_stderr
from app.cli.terminal_language import terminal_catalogue, text_of
from app.client import (
    ApiError,
    ConflictError,
    InvalidInputError,
    Message,
    NotFoundError,
    Throughline,
    TooLargeError,
    endpoints,
)
from app.client.calls import Call
from app.core.model.json_sizes import METADATA_BYTES, json_bytes

BATCH_MESSAGES: Final = 1_000
"""How many messages the service accepts at once."""
BATCH_BYTES: Final = 4_000_000
"""The most bytes of JSON in a batch: half of what a request may have."""
MOVED_ON: Final = "conversation_moved_on"
"""The code of a refused batch if the conversation has other messages since the batch before."""
NO_MESSAGE: Final = UUID(int=0)
"""The id that stands for the last message of a conversation that has none yet."""
UNFINISHED: Final = "import_unfinished"
"""In the metadata of a conversation while an import still has to repeat pins, anchors or files in it."""


FormatOption = Annotated[
    Literal["json", "markdown"], typer.Option("--format", help="json: everything; markdown: what was said.")
]


@dataclass(frozen=True, slots=True)
class Done:
    """The result for one conversation of a file."""

    id: str
    title: str
    place: str
    messages: int
    hidden: int
    other_branches: int
    was_there: bool


def import_file(
    file: Annotated[
        Path, typer.Argument(help="JSON, JSON Lines, or an export of ours, of ChatGPT or of Claude (.json or .zip).")
    ],
    preset: Annotated[str | None, typer.Option(help="For the new conversations.")] = None,
    title: Annotated[str | None, typer.Option(help="Where the file has none.")] = None,
    user_id: Annotated[str | None, typer.Option(help="Whose they are.")] = None,
    url: Url = None,
    key: Key = None,
    *,
    again: Annotated[bool, typer.Option("--again", help="Also what was imported before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import conversations; a repeated import after a broken one goes on where it broke off."""
    with connected_client(url, key) as client:
        source = open_source(file)
        given = {"preset": preset, "title": title, "user_id": user_id}
        total = sum(len(one.messages) for one in source.conversations())  # all is checked before anything is sent
        with progress_on_stderr(is_shown=total > 0) as progress:
            task = progress.add_task(text_of("import.running"), total=total)
            importing = _ImportingFile(client, file, source, given, again=again)
            done = list(importing.run(lambda count: progress.advance(task, count)))
        _print_imported(Screen(terminal_catalogue()), done, as_json=as_json)


def export_conversation(
    conversation: Conversation,
    format_: FormatOption = "json",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; unset: standard output.")] = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Export a conversation: the full history, however long."""
    with connected_client(url, key) as client:
        id_ = conversation_id(client, conversation)
        describe: Callable[[str], Call[Any]] = endpoints.export
        if format_ == "markdown":
            describe = endpoints.export_markdown
        received = client.download(describe(id_))
        if output is None:
            for piece in received:
                sys.stdout.buffer.write(piece)
            sys.stdout.flush()
            return
        try:
            with output.open("wb") if is_special_file(output) else atomic_file(output) as file:
                size = sum(file.write(piece) for piece in received)
        except OSError as error:
            raise ComplaintError(text_of("complaint.cannot_write", file=str(output), why=str(error.strerror))) from None
        if output.is_file():
            Screen().line(text_of("export", file=str(output), count=size))


def _import_key(text: str, given: Mapping[str, Any], *, again: bool) -> str:
    # The same file with the same options is the same import, so that a repeated one has no further effect.
    salt = os.urandom(8).hex() if again else ""
    made_of = "\n".join([text, json.dumps(given, sort_keys=True), salt])
    return f"import-{hashlib.sha256(made_of.encode()).hexdigest()[:32]}"


class _ChangedError(ComplaintError):
    """The conversation of an earlier import was deleted since, or somebody wrote in it before it was whole."""

    def __init__(self, words: str, id_: str) -> None:
        super().__init__(words)
        self.id = id_


class _ImportingFile:
    """A file that is being imported."""

    def __init__(
        self, client: Throughline, file: Path, source: Source, given: Mapping[str, Any], *, again: bool
    ) -> None:
        self._client = client
        self._file = str(file)
        self._source = source
        self._given = given
        self._again = again
        self._key = _import_key(source.text, given, again=again)

    def run(self, advance: Callable[[int], None]) -> Iterator[Done]:
        """Import one conversation after the other."""
        imported: Mapping[str, str] | None = None
        for number, one in enumerate(self._source.conversations(), start=1):
            if one.identity and not self._again and imported is None:
                imported = _imported_before(self._client)
            id_ = imported.get(one.identity) if imported and one.identity else None
            was_there = id_ is not None
            if id_ is None:
                key = (
                    _import_key(one.identity, self._given, again=self._again)
                    if one.identity
                    else f"{self._key}-{number}"
                )
                try:
                    id_ = _Importing(self._client, one, key, self._file).run(self._given, advance)
                except _ChangedError as error:
                    if not one.identity:
                        raise
                    complain(str(error))
                    id_, was_there = error.id, True  # one refused conversation does not keep the others out
            else:
                advance(len(one.messages))
            title = str(one.about.get("title") or one.place)
            counts = (len(one.messages), one.hidden, one.other_branches)
            yield Done(id_, title, one.place, *counts, was_there)


def _imported_before(client: Throughline) -> dict[str, str]:
    """The ids of the conversations that were imported completely, by ``Imported.identity``."""
    found = {}
    for one in client.conversations(page_size=100):
        about = one.metadata
        expected = about.get("imported_messages")
        if isinstance(expected, int) and one.message_count >= expected:
            parts = (about.get(name) for name in ("imported_from", "imported_id", "imported_digest"))
            found[":".join(str(part) for part in parts)] = str(one.id)
    return found


class _Importing:
    """One conversation that is being imported."""

    def __init__(self, client: Throughline, one: Imported, key: str, file_name: str) -> None:
        self._client = client
        self._imported = one
        self._key = key
        self._where = f"{file_name}: {one.place}" if one.place else file_name
        self._stem = None if one.is_export or one.identity else Path(file_name).stem
        own = {name: value for name, value in one.about.get("metadata", {}).items() if name != UNFINISHED}
        marked = {**own, UNFINISHED: True}
        self._is_marked = bool(one.pinned or one.chosen or one.files) and json_bytes(marked) <= METADATA_BYTES
        self._metadata: Mapping[str, Any] = marked if self._is_marked else own

    def run(self, given: Mapping[str, Any], advance: Callable[[int], None]) -> str:
        """Create a conversation and append its messages, each step under an idempotency key of its own."""
        id_, start, is_new, last = "", 0, False, NO_MESSAGE
        try:
            created = self._client.create_conversation(idempotency_key=self._key, **self._conversation_fields(given))
            id_, is_new = str(created.id), created.message_count == 0
            if self._is_marked and UNFINISHED not in created.metadata:  # what a user changed since then stays
                advance(len(self._imported.messages))
                return id_
            for number, batch in enumerate(_batches(self._imported.messages), start=1):
                key = f"{self._key}-{number}"
                appended = self._client.append_many(id_, batch, expected_last_message_id=last, idempotency_key=key)
                self._pin_where_possible(id_, appended, start)
                start, last = start + len(batch), appended[-1].id
                advance(len(batch))
            self._choose_anchors(id_)
            self._attach_files(id_)
            if self._is_marked:
                self._client.change_conversation(id_, metadata={UNFINISHED: None})
        except (InvalidInputError, TooLargeError) as error:
            raise self._refused(id_ if is_new else "", start, error) from None
        except ConflictError as error:
            if error.code != MOVED_ON:
                raise
            raise _ChangedError(text_of("complaint.moved_on", where=self._where, id=id_), id_) from None
        except NotFoundError:
            raise _ChangedError(text_of("complaint.deleted", where=self._where), id_) from None
        return id_

    def _refused(self, id_: str, start: int, error: ApiError) -> ComplaintError:
        """Delete the new conversation, so that none is left half imported, and return the complaint."""
        where = self._where
        if start:
            where += f", {text_of('import.after_message', number=str(start))}"
        if id_:
            self._client.delete_conversation(id_)
        kept = f" {text_of('import.taken_back')}" if id_ else ""
        return ComplaintError(f"{where}: {words_of(error)}{kept}")

    def _conversation_fields(self, given: Mapping[str, Any]) -> Any:
        asked = {name: value for name, value in given.items() if value is not None}
        about = {**self._imported.about, **asked}
        about["title"] = self._imported.about.get("title") or asked.get("title") or self._stem
        about.pop("metadata", None)
        if self._metadata:
            about["metadata"] = self._metadata
        if "preset" in asked:
            about.pop("preset_version", None)
        elif self._imported.policy:
            about["policy"] = self._policy_beyond_preset(str(about.get("preset", "")), about.get("preset_version"))
        return about

    def _policy_beyond_preset(self, name: str, version: int | None) -> Mapping[str, Any]:
        preset = next((one for one in self._client.presets() if one.name == name), None)
        if preset is None:
            return {}
        known = next((one.policy for one in preset.earlier if one.version == version), preset.policy)
        return {name: value for name, value in self._imported.policy.items() if known.get(name, value) != value}

    def _choose_anchors(self, id_: str) -> None:
        """Mark the anchors that a user chose to keep; the service finds all anchors again in the messages."""
        left = set(self._imported.chosen)
        for anchor in self._client.anchors(id_, page_size=100) if left else ():
            place = (anchor.original_position, anchor.offset, anchor.type)
            if place in left:
                self._client.set_anchor_status(id_, anchor.id, "active")
                left.remove(place)
        if left:
            complain(text_of("complaint.not_chosen", where=self._where, count=str(len(left))))

    def _attach_files(self, id_: str) -> None:
        """Attach the files. A file that the service refuses is reported, and the import goes on.

        A refusal that may pass ends the import, so that a repeated one attaches the file.
        """
        for number, file in enumerate(self._imported.files, start=1):
            type_, tokens = file["media_type"], file.get("tokens")
            lasts = type_.startswith(("audio/", "video/")) and isinstance(tokens, int)
            try:
                self._client.attach_file(
                    id_,
                    base64.b64decode(file["data"]),
                    name=file["name"],
                    media_type=type_,
                    tokens=tokens if lasts else None,
                    idempotency_key=f"{self._key}-file-{number}",
                )
            except (ApiError, ValueError) as error:
                _raise_if_passing(error)
                why = words_of(error) if isinstance(error, ApiError) else str(error)
                complain(text_of("complaint.not_attached", where=self._where, number=str(number), why=why))

    def _pin_where_possible(self, id_: str, appended: Sequence[Message], start: int) -> None:
        for place, message in enumerate(appended, start=start):
            if place not in self._imported.pinned:
                continue
            try:
                self._client.pin_message(id_, message.id)
            except ApiError as error:
                _raise_if_passing(error)
                number, why = str(place + 1), words_of(error)
                complain(text_of("complaint.not_pinned", where=self._where, number=number, why=why))


def _raise_if_passing(error: Exception) -> None:
    if isinstance(error, ApiError) and error.retryable:
        raise error


def _batches(messages: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Batches of as many messages as the service accepts at once; the same messages always give the same batches."""
    batch, size = list[Mapping[str, Any]](), 0
    for message in messages:
        weight = len(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
        if batch and (len(batch) == BATCH_MESSAGES or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += weight
    if batch:
        yield batch


def _print_imported(screen: Screen, done: Sequence[Done], *, as_json: bool) -> None:
    if as_json:
        screen.json([_as_value(one) for one in done])
        return
    for one in done:
        unshown = {"hidden": one.hidden, "other_branches": one.other_branches}
        notes = [text_of(f"import.{name}", count=count) for name, count in unshown.items() if count]
        notes += [text_of("import.there")] if one.was_there else []
        noted = f" ({'; '.join(notes)})" if notes else ""
        title = one_line(one.title)
        screen.line(f"{one.id}  {text_of('import.done', count=one.messages)}{noted}{'  ' + title if title else ''}")
    if len(done) > 1:
        new = [one for one in done if not one.was_there]
        messages, there = sum(one.messages for one in new), len(done) - len(new)
        screen.line(text_of("import.all", new=len(new), messages=messages, there=there))


def _as_value(one: Done) -> dict[str, Any]:
    names = ("messages", "place", "hidden", "other_branches", "was_there")
    return {"conversation_id": one.id, **{name: getattr(one, name) for name in names}}
