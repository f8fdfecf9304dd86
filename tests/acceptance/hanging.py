"""``throughline run`` over the real API, with two things that hold the interpreter in C: a route and a certain text."""

from __future__ import annotations

import ctypes
import sys
from unittest import mock

from fastapi import FastAPI

from app import main
from app.core.context.assembly import AssembledContext, ContextInputs
from app.settings import Settings
from app.usecases.context import context

SERVE = "serve"
SECONDS = 600
POISON = "the text that nobody survives"


def hold(seconds: int = SECONDS) -> None:
    """Keep the interpreter's lock, as a pattern that never ends does; ``CDLL`` would let go of it."""
    ctypes.PyDLL(None).sleep(seconds)


def poisonable() -> None:
    """Let a conversation that contains this text hang every process that assembles its context."""
    real = context._assembled

    def assembled(material: ContextInputs, budget: int | None) -> AssembledContext:
        if any(POISON in message.content for message in material.tail):
            hold()
        return real(material, budget)

    context._assembled = assembled


def create_app() -> FastAPI:
    """The real application with the route and the text that hang it."""
    poisonable()
    app = main.create_app()

    @app.get("/hang")
    async def hang() -> None:
        hold()

    return app


def supervise() -> None:
    """Start ``throughline run`` with a small worker, to test only the supervision."""
    from app import cli  # noqa: PLC0415 - the application needs nothing of it
    from app.devserver import run  # noqa: PLC0415

    api = run.Commands.of(Settings()).api
    assert api[2] == "app.main"
    commands = run.Commands(
        api=(*api[:2], "tests.acceptance.hanging", SERVE, *api[3:]),
        worker=(sys.executable, "-m", "tests.acceptance.stand_in", "worker"),
    )
    with mock.patch.object(run.Commands, "of", return_value=commands):
        cli.app(["run"])


if __name__ == "__main__":
    main.main(sys.argv[2:], create_app) if sys.argv[1:2] == [SERVE] else supervise()
