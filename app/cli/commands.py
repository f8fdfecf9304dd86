"""The names of the commands of ``throughline``; the code of a command is imported only when it is run.

Importing all commands takes seconds. A list of commands, or a chat, should not wait for imports that it does not need.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from app.cli.interrupts import ends_at_once
from app.cli.standard_streams import open_closed_streams
from app.infrastructure.garbage import importing
from app.version import VERSION

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "run": ("app.cli.running:run", "Start PostgreSQL, Valkey, the API and the worker, and keep them until Ctrl-C."),
    "migrate": (
        "app.cli.running:migrate",
        "Bring the database of DATABASE_URL, or the embedded one, to the newest schema.",
    ),
    "demo": ("app.cli.demo.command:demo", "Play a long conversation and watch it being compacted."),
    "chat": ("app.cli.chat:chat", "Chat; lines from a pipe are answered one after the other."),
    "list": ("app.cli.inspect:list_conversations", "List conversations, the one with the newest message first."),
    "context": ("app.cli.inspect:context", "Show what a model would be sent now; nothing is compacted."),
    "state": (
        "app.cli.inspect:state",
        "Show the state that stands for the folded messages, with the messages that each entry came from.",
    ),
    "compact": ("app.cli.inspect:compact", "Fold a conversation into its state now, and show the summary."),
    "expand": ("app.cli.inspect:expand", "Show the messages that a segment stands for, or a shorter text of them."),
    "search": ("app.cli.tracing:search", "Find messages by words, those that were folded too."),
    "anchors": ("app.cli.tracing:anchors", "Show the passages that are kept word for word, and what became of them."),
    "pin": ("app.cli.marking:pin", "Pin a message: it is in every context, word for word."),
    "unpin": ("app.cli.marking:unpin", "Remove the pin of a message: it may be folded."),
    "set-anchor": (
        "app.cli.marking:set_anchor",
        "Set what became of a passage that is kept word for word; only `active` ones are served.",
    ),
    "compactions": ("app.cli.tracing:compactions", "Show when a conversation was folded, how far, and why not."),
    "stats": ("app.cli.inspect:stats", "Show what compactions did, saved and cost: of one conversation, or of all."),
    "continuity": (
        "app.cli.inspect:continuity",
        "Show what could still be answered after each compaction, by questions that were made before it.",
    ),
    "move-media": (
        "app.cli.data_upgrades:move_media",
        "Move images and files that versions before kept within their messages; the service may run, and you may stop.",
    ),
    "index-words": (
        "app.cli.data_upgrades:index_words",
        "Make the word index of messages that versions before stored; the service may run, and you may stop.",
    ),
    "backup": (
        "app.cli.backup:backup",
        "Write the whole database, as it is at one moment, into one file; the service may run.",
    ),
    "restore": (
        "app.cli.backup:restore_command",
        "Load a backup (FILE) into an empty database; or take a conversation back to an earlier state (ID VERSION).",
    ),
    "import": (
        "app.cli.transfer:import_file",
        "Import conversations; a repeated import after a broken one goes on where it broke off.",
    ),
    "export": ("app.cli.transfer:export_conversation", "Export a conversation: the full history, however long."),
    "doctor": (
        "app.cli.doctor:doctor",
        "Look for error texts, missing, empty and cut-off summaries in states; exit 1 when one is found and stays.",
    ),
    "erase-user": (
        "app.cli.erasing:erase_user",
        "Delete every conversation of an end user, and the user's own keys.",
    ),
    "keys": ("app.cli.keys:keys", "Create, list, change and revoke API keys."),
    "conversations": ("app.cli.operating:conversations", "Operate on conversations."),
    "tenants": ("app.cli.erasing:tenants", "Operate on tenants."),
    "files": ("app.cli.files:files", "The files of a conversation."),
}
"""Each command by its name: its module and function, and its line in the list of commands."""


class CommandsOnDemand(TyperGroup):
    """Lists commands by name, and imports the one that is called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: TyperCommand(name, help=text) for name, (_, text) in COMMANDS.items()}

    def main(self, *args: Any, **given: Any) -> Any:
        """Run the command. If help or version cannot be written, one line says so, as for output of the commands."""
        open_closed_streams()
        try:
            return super().main(*args, **given)
        except OSError as error:
            from app.cli.complaints import EXIT_CANNOT_START, complain_of_output  # noqa: PLC0415 - takes its time

            complain_of_output(error)
            sys.exit(EXIT_CANNOT_START)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the command that is called, and return it with its arguments."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, imported_command(name) if name is not None and name in COMMANDS else listed, rest


def imported_command(name: str) -> Any:
    """A command, imported from its module."""
    place, attribute = COMMANDS[name][0].split(":")
    with ends_at_once(), importing():
        found = getattr(import_module(place), attribute)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name=name)(found)
    return get_command(alone)


app = typer.Typer(
    name="throughline",
    cls=CommandsOnDemand,
    help="Conversations that outgrow a model's context window, kept whole.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    # Options belong to a command, and come after its name.
    options_metavar="",
    subcommand_metavar="COMMAND [OPTIONS] [ARGS]...",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer's callbacks get the value alone
    if asked:
        typer.echo(f"throughline {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Say which version this is.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Conversations that outgrow a model's context window, kept whole."""
