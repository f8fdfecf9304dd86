"""Runs the demo against a running service, or against one that it starts and ends itself."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from app.cli.complaints import ComplaintError, complain, errors_as_one_line, words_of
from app.cli.connecting import Key, find_service
from app.cli.demo.play import play
from app.cli.screen import DIM, Screen
from app.client import ThroughlineError
from app.devserver.configured import address, read_settings, suspicious_variables
from app.devserver.run import Service
from app.devserver.supervisor import StopRequestedError

EXIT_UNEXPECTED: Final = 1
"""The exit code if something expected did not happen; stderr has one line about it."""


def demo(
    url: Annotated[str | None, typer.Option(help="Where to play; unset: PORT, or a service of its own.")] = None,
    key: Key = None,
    *,
    fast: Annotated[bool, typer.Option("--fast", help="Without pauses.")] = False,
) -> None:
    """Play a long conversation and watch it being compacted."""
    with errors_as_one_line():
        screen = Screen(wraps=True)
        try:
            found = _running_service(url)
            if found is None:
                _play_on_own_service(screen, key, fast=fast)
            else:
                play(found, key, screen, fast=fast)
                _show_next_steps(screen, found, option=f" --url {url}" if url else "")
        except (ComplaintError, ThroughlineError) as error:
            complain(words_of(error))
            raise typer.Exit(EXIT_UNEXPECTED) from None


def _running_service(url: str | None) -> str | None:
    try:
        return find_service(url)
    except ComplaintError:
        if url is not None:
            raise
        return None


def _play_on_own_service(screen: Screen, key: str | None, *, fast: bool) -> None:
    """Start a service on a free port, play, and stop the service in any case."""
    screen.line(("No service answers yet: starting one for the demo, over the same data folder …", DIM))
    settings = read_settings()
    for line in suspicious_variables():
        complain(line)
    own = settings.model_copy(update={"host": "127.0.0.1", "port": _free_port()})
    finished = False

    def started() -> None:
        nonlocal finished
        play(address(own), key, screen, fast=fast)
        _show_next_steps(screen, address(settings), is_over=True)
        finished = True
        # The service runs until it is asked to stop, as a signal would ask it.
        raise StopRequestedError

    Service(own, emit=lambda *_: None).run(started, lambda: screen.line(("Stopping the demo's service …", DIM)))
    if not finished:
        raise KeyboardInterrupt


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _command_line_of_program() -> str:
    installed = Path(sys.executable).with_name("throughline")
    if shutil.which("throughline") == str(installed):
        return "throughline"
    if installed.exists():
        return shlex.quote(os.path.relpath(installed))
    return f"{shlex.quote(os.path.relpath(sys.executable))} -m app.cli"


def _show_next_steps(screen: Screen, url: str, *, option: str = "", is_over: bool = False) -> None:
    """Print commands to continue with; ``option`` names the service if they would not find it by themselves."""
    program = _command_line_of_program()
    steps = [
        ("talk on", f"{program} chat last{option}"),
        ("the state, with the messages that each entry came from", f"{program} state last{option}"),
        ("what the next model call would be sent", f"{program} context last --full{option}"),
        ("the whole contract, to click through", f"{url}/docs"),
    ]
    if is_over:
        steps.insert(0, ("this service ends with the demo; start one that stays, over the same data", f"{program} run"))
    screen.line()
    screen.line(("Try next", "bold"))
    for words, command in steps:
        screen.line(f"   {words}:")
        screen.line((f"      {command}", "cyan"))
