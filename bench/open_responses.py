"""Runs the Open Responses compliance suite on this checkout: ``python -m bench.open_responses FOLDER``.

FOLDER holds the suite as its repository has it (``bin``, ``src/lib``, ``src/generated``), with ``bun`` and ``zod``
installed there by npm: the suite is not part of this project. The service runs with servers of its own and asks a
scripted model, which calls the tool that it is offered; nothing leaves the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from app.devserver import EmbeddedServers
from app.storage.migrations import run_migrations
from tests.acceptance.local import local_service
from tests.openai_server import obliging, running_openai

MODEL: Final = "throughline"
SUITE: Final = "bin/compliance-test.ts"
PATIENCE: Final = 300
"""Seconds that the whole suite may take."""


@contextlib.contextmanager
def scripted_service(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a service whose chat model is scripted; yield its address."""
    with running_openai() as openai, EmbeddedServers(folder / "servers", durable=False) as servers:
        openai.rule = obliging
        run_migrations(servers.database_url)
        environment = {
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": openai.url,
            "THROUGHLINE_CHAT_MODEL": "openai-responses:gpt-scripted",
            "THROUGHLINE_COMPACTION_MODEL": "offline",
            **(settings or {}),
        }
        with local_service(
            folder, database_url=servers.database_url, redis_url=servers.redis_url, settings=environment
        ) as service:
            yield service.url


def run_suite(suite: Path, url: str) -> dict[str, Any]:
    """The suite's results for the service at that address. Raises ``OSError`` if the suite does not run."""
    argv = ["node_modules/.bin/bun", "run", SUITE, "-u", f"{url}/v1", "-k", "none", "-m", MODEL, "--json"]
    done = subprocess.run(argv, cwd=suite, check=False, capture_output=True, text=True, timeout=PATIENCE)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise OSError(f"the suite did not run: {done.stderr[-2_000:] or done.stdout[-2_000:]}") from None
    return found


def main() -> int:
    """Run the suite, and print what failed; return 0 if everything passed."""
    parser = argparse.ArgumentParser(prog="python -m bench.open_responses", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the suite")
    suite = parser.parse_args().folder
    if not (suite / SUITE).is_file():
        parser.error(f"{suite} holds no {SUITE}")
    with tempfile.TemporaryDirectory() as folder, scripted_service(Path(folder)) as url:
        report = run_suite(suite, url)
    for result in report["results"]:
        print(f"{result['status']:8} {result['id']}")
        for error in result.get("errors") or ():
            print(f"         {str(error)[:400]}")
    summary = report["summary"]
    print(f"{summary['passed']} of {summary['total']} passed")
    return 0 if summary["passed"] == summary["total"] else 1


if __name__ == "__main__":
    sys.exit(main())
