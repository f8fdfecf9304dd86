"""What can be typed into a chat beside messages. ``/compact`` is none of these: the service itself understands it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from app.cli.complaints import ComplaintError
from app.cli.inspect import expanded, newest_state
from app.cli.screen import DIM, Screen
from app.cli.showing import show_context, show_segment, show_state, show_stats
from app.client import Throughline
from app.client.endpoints import LevelName
from app.domain.segments.values import LEVEL_OF

PAGE: Final = 4_000
"""Tokens that an expansion shows at most."""

HELP: Final = (
    ("/compact [focus]", "fold the conversation now; what to pay attention to may follow"),
    ("/context", "what a model would be sent, part by part"),
    ("/state", "what stands for the folded messages"),
    ("/expand MARKER [full|detailed|brief|tags]", "what is behind a marker, or a segment's id"),
    ("/stats", "what compactions did and saved"),
    ("/help", "this list"),
    ("/quit", "end the chat; it can be taken up again"),
)
_ENDS: Final = frozenset({"/quit", "/exit"})

Act = Callable[[Throughline, str, Screen, str], None]


def run_command(text: str, client: Throughline, id_: str, screen: Screen) -> bool:
    """Do what a line that begins with a slash says; whether the chat goes on.

    Raises:
        ComplaintError: There is no such command, or it lacks something.
    """
    name, _, rest = text.strip().partition(" ")
    if name in _ENDS:
        return False
    act = COMMANDS.get(name)
    if act is None:
        raise ComplaintError(f"There is no {name}: /help lists the commands; a space before it makes it a message.")
    act(client, id_, screen, rest.strip())
    return True


def _context(client: Throughline, id_: str, screen: Screen, _rest: str) -> None:
    show_context(screen, client.look_at_context(id_))


def _state(client: Throughline, id_: str, screen: Screen, _rest: str) -> None:
    newest = newest_state(client, id_)
    if newest is None:
        screen.line(("There is no state yet: nothing was compacted.", DIM))
    else:
        show_state(screen, newest)


def _expand(client: Throughline, id_: str, screen: Screen, rest: str) -> None:
    before, _, last = rest.rpartition(" ")
    named, level = (before, last) if before and last in LEVEL_OF else (rest, None)
    if not named:
        raise ComplaintError("/expand needs a marker or a segment's id: /context shows them.")
    found = expanded(client, id_, named.strip(), cast("LevelName | None", level), max_tokens=PAGE)
    show_segment(screen, found)
    if found.next_cursor:
        screen.line(("… there is more: `throughline expand` shows all of it.", DIM))


def _stats(client: Throughline, id_: str, screen: Screen, _rest: str) -> None:
    show_stats(screen, client.stats(id_))


def _help(_client: Throughline, _id: str, screen: Screen, _rest: str) -> None:
    width = max(len(usage) for usage, _ in HELP)
    for usage, words in HELP:
        screen.line(f"{usage:<{width}}  ", (words, DIM))


COMMANDS: Final[Mapping[str, Act]] = {
    "/context": _context,
    "/state": _state,
    "/expand": _expand,
    "/stats": _stats,
    "/help": _help,
}
