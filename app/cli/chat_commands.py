"""The commands of ``throughline chat``, except ``/compact``, which the service itself understands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from app.cli.complaints import ComplaintError
from app.cli.inspect import expanded_segment, newest_state
from app.cli.screen import DIM, Screen
from app.cli.showing import show_context, show_segment, show_state, show_stats
from app.client import Throughline
from app.client.endpoints import LevelName
from app.core.model.segments import LEVEL_BY_NAME

PAGE: Final = 4_000
"""The most tokens that an expansion shows."""

HELP: Final = (
    ("compact", "/compact [focus]"),
    ("context", "/context"),
    ("state", "/state"),
    ("expand", "/expand MARKER [full|detailed|brief|tags]"),
    ("stats", "/stats"),
    ("help", "/help"),
    ("quit", "/quit"),
)
"""For each command, the name of its help text (``cli.help.compact``) and how it is typed."""
_QUIT_COMMANDS: Final = frozenset({"/quit", "/exit"})

Act = Callable[[Throughline, str, Screen, str], None]


def run_command(text: str, client: Throughline, id_: str, screen: Screen) -> bool:
    """Run a line that begins with a slash, and return whether the chat goes on.

    Raises:
        ComplaintError: There is no such command, or an argument is missing.
    """
    name, _, rest = text.strip().partition(" ")
    if name in _QUIT_COMMANDS:
        return False
    act = COMMANDS.get(name)
    if act is None:
        raise ComplaintError(screen.catalogue.text("cli.no_command", name=name))
    act(client, id_, screen, rest.strip())
    return True


def _context(client: Throughline, id_: str, screen: Screen, _rest: str) -> None:
    show_context(screen, client.look_at_context(id_))


def _state(client: Throughline, id_: str, screen: Screen, _rest: str) -> None:
    newest = newest_state(client, id_)
    if newest is None:
        screen.line((screen.catalogue.text("cli.no_state"), DIM))
    else:
        show_state(screen, newest)


def _expand(client: Throughline, id_: str, screen: Screen, rest: str) -> None:
    before, _, last = rest.rpartition(" ")
    named, level = (before, last) if before and last in LEVEL_BY_NAME else (rest, None)
    if not named:
        raise ComplaintError(screen.catalogue.text("cli.needs_marker"))
    wanted = cast("LevelName | None", level)
    found = expanded_segment(client, id_, named.strip(), wanted, screen.catalogue, max_tokens=PAGE)
    show_segment(screen, found)
    if found.next_cursor:
        screen.line((screen.catalogue.text("cli.more"), DIM))


def _stats(client: Throughline, id_: str, screen: Screen, _rest: str) -> None:
    show_stats(screen, client.stats(id_))


def _help(_client: Throughline, _id: str, screen: Screen, _rest: str) -> None:
    width = max(len(usage) for _, usage in HELP)
    for name, usage in HELP:
        screen.line(f"{usage:<{width}}  ", (screen.catalogue.text(f"cli.help.{name}"), DIM))


COMMANDS: Final[Mapping[str, Act]] = {
    "/context": _context,
    "/state": _state,
    "/expand": _expand,
    "/stats": _stats,
    "/help": _help,
}
