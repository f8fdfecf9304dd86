"""Where the demo plays: against a service that runs, or against one of its own that ends with it."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from app.cli.demo.client import DemoError, Throughline
from app.cli.demo.play import play
from app.cli.demo.view import View, choose_view
from app.devserver.run import Service, address
from app.devserver.supervisor import StopRequestedError
from app.settings import Settings


def demo(
    settings: Settings,
    *,
    url: str | None = None,
    key: str | None = None,
    running: str | None = None,
    fast: bool = False,
) -> None:
    """Play the demo.

    Args:
        settings: Say where a service would run, and with what the demo's own one is started.
        url: A service that must answer; nothing is started then.
        key: An API key, where the service asks for one.
        running: The address of a service that holds the data folder, where the folder's note has one.
        fast: Without pauses.

    Raises:
        DemoError: No service answers at ``url``, or something expected did not happen.
        CannotStartError: A service of its own cannot start; likewise ``EmbeddedError`` and ``ChildFailedError``.
    """
    view = choose_view(fast=fast)
    found = _first_ready([url] if url else [address(settings), running or ""])
    if found:
        _play_at(found, key, view)
    elif url:
        raise DemoError(f"No Throughline answers at {url}/readyz.")
    else:
        _with_own_service(settings, key, view)


def _first_ready(urls: Sequence[str]) -> str | None:
    for url in filter(None, urls):
        with Throughline(url) as service:
            if service.ready():
                return url
    return None


def _play_at(url: str, key: str | None, view: View, *, later: str | None = None) -> None:
    with Throughline(url, key) as service:
        play(service, view, later=later)


def _with_own_service(settings: Settings, key: str | None, view: View) -> None:
    """Start a service on a free port, play, and stop it, whatever happens."""
    view.wait("No service answers yet: starting one for the demo, over the same data folder …")
    own = settings.model_copy(update={"host": "127.0.0.1", "port": _free_port()})
    finished = False

    def started() -> None:
        nonlocal finished
        _play_at(address(own), key, view, later=address(settings))
        finished = True
        # The service runs until it is asked to stop; that is what a signal does, too.
        raise StopRequestedError

    Service(own, emit=lambda *_: None).run(started, stopping=lambda: view.wait("Stopping the demo's service …"))
    if not finished:
        raise KeyboardInterrupt


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
