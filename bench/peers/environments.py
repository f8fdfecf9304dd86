"""Makes an environment for each framework, by ``venv`` and ``pip`` in a cache folder: no lock file has frameworks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.report import FOLDER

CACHE: Final = FOLDER / "peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A framework: the packages to install, and the module that runs it."""

    title: str
    module: str
    requirements: tuple[str, ...]
    folds: bool = False
    """Whether its input to a model stops growing, at its defaults."""


FRAMEWORKS: Final[Mapping[str, Wanted]] = {
    "openai-agents": Wanted(
        title="OpenAI Agents, SQLAlchemySession",
        module="openai_agents",
        requirements=("openai-agents[sqlalchemy]==0.24.0", "sqlalchemy==2.1.9", "asyncpg==0.32.0"),
    ),
    "adk": Wanted(
        title="Google ADK, DatabaseSessionService",
        module="adk",
        requirements=("google-adk[db]==2.13.0", "sqlalchemy==2.1.9", "asyncpg==0.32.0"),
    ),
    "langgraph": Wanted(
        title="LangGraph, AsyncPostgresSaver",
        module="langgraph",
        requirements=("langgraph==1.2.22", "langgraph-checkpoint-postgres==3.2.0", "psycopg[binary]==3.3.9"),
    ),
    "llama-index": Wanted(
        title="LlamaIndex, Memory",
        module="llama_index",
        requirements=("llama-index-core==0.14.25", "sqlalchemy[asyncio]==2.1.9", "asyncpg==0.32.0"),
        folds=True,
    ),
}


class UnavailableError(RuntimeError):
    """A framework's packages cannot be installed; the message says why."""


def python_of(name: str, cache: Path = CACHE) -> Path:
    """The interpreter of a framework's environment; it is made if it does not exist with the wanted packages.

    Raises:
        UnavailableError: The packages cannot be installed.
    """
    folder = cache.absolute() / name
    python, note = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(FRAMEWORKS[name].requirements)
    if note.exists() and note.read_text() == wanted:
        return python
    print(f"installing {', '.join(FRAMEWORKS[name].requirements)}", file=sys.stderr)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    for argv in ([sys.executable, "-m", "venv", "--clear", str(folder)], [*pip, *FRAMEWORKS[name].requirements]):
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise UnavailableError(next(reversed(done.stderr.strip().splitlines()), f"status {done.returncode}"))
    note.write_text(wanted)
    return python
