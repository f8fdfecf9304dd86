"""Part 1: whether the service does what the OpenAPI document says, for a key of each scope.

Schemathesis runs as a separate process over ``openapi.json``, with every check. Its *coverage* phase (each boundary of
each field, each method that is not described) runs once, as an administrator; its *fuzzing* phase with each key, and
without a key. Paths have the ids of an existing conversation.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from bench.attack.findings import Outcome
from bench.attack.target import Target
from tests.acceptance.talk import lines
from tests.servers import ROOT

NAME: Final = "document"
KEYS: Final = ("admin", "writer", "reader", "user", None)
SYSTEMATIC: Final = 5
"""The coverage phase is run too from so many cases per operation on."""
PATIENCE: Final = 3_600
"""Seconds that one run may take."""
OVERLAPPING: Final = (
    "POST /v1/responses/compact",
    "POST /v1/responses/input_tokens",
    "POST /conversations/{conversation_id}/messages/batch",
)
EXCLUDED: Final[Mapping[str, str]] = {
    "positive_data_acceptance": """the document cannot say that fields exclude each other, that a cursor has to be one
    that was given out, or that a key of idempotency was used before; the field is named then (part 2)"""
}
"""Checks that are wrong about this service, each with the reason."""
EXCLUDED_AT: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "allow_header_conformance": (
        OVERLAPPING,
        "the path is one of a neighbour too, with an id in its place (`/v1/responses/{response_id}`), and answers",
    ),
    "unsupported_method": (OVERLAPPING, "the same: the neighbour answers that there is no such id"),
    "response_schema_conformance": (
        ("GET /conversations/{conversation_id}/events",),
        """the schema is that of an event's data, not of the lines around it; tests/acceptance/declared.py compares
        every event of every test with it""",
    ),
}
"""Checks that are wrong at some routes only: the routes and the reason."""
REFUSALS: Final = ("400", "401", "403", "404", "405", "409", "412", "413", "415", "422")
"""Statuses that refuse data out of contract: a body may also be too large, or its conversation at another version."""


class NotInstalledError(Exception):
    """Schemathesis is not installed: only the benches depend on it."""


def attack(target: Target, seed: int, examples: int) -> Outcome:
    """Run Schemathesis with each key, and without one.

    Args:
        target: The service.
        seed: The seed of what is drawn.
        examples: How many cases each operation gets with each key.

    Raises:
        NotInstalledError: Schemathesis is not installed.
    """
    if find_spec("schemathesis") is None:
        raise NotInstalledError("pip install --no-deps --require-hashes -r requirements-bench.lock")
    outcome = Outcome(NAME)
    with tempfile.TemporaryDirectory(prefix="document-") as folder:
        config = Path(folder) / "schemathesis.toml"
        for number, key in enumerate(KEYS):
            config.write_text(_config(*_conversations(target)), encoding="utf-8")
            phases = ("coverage", "fuzzing") if number == 0 and examples >= SYSTEMATIC else ("fuzzing",)
            events = Path(folder) / f"{number}.ndjson"
            _run(target, key, config, events, phases, seed, examples)
            read(events, key or "no key", outcome)
    return outcome


def _conversations(target: Target) -> tuple[str, str]:
    """The ids of a conversation of the end user with messages and a state, and of one that may be deleted."""
    with target.client("user") as http:
        kept, doomed = (http.post("/conversations", json={}).raise_for_status().json()["id"] for _ in range(2))
        messages = [{"role": role, "content": content} for role, content in lines(24)]
        http.post(f"/conversations/{kept}/messages/batch", json={"messages": messages}).raise_for_status()
        http.post(f"/conversations/{kept}/compact", json={"keep_tail_messages": 4}).raise_for_status()
    return kept, doomed


def _config(kept: str, doomed: str) -> str:
    """The configuration: which ids paths have, and which checks are left out where."""
    lines_ = [
        "continue-on-failure = true",
        "max-stream-events = 3",
        "request-timeout = 40",
        "[checks]",
        *(f"{name}.enabled = false" for name in EXCLUDED),
        f"negative_data_rejection.expected-statuses = {json.dumps(REFUSALS)}",
        "[parameters]",
        f'"path.conversation_id" = "{kept}"',
        "[[operations]]",
        'include-path-regex = "^/v1/"',
        f'parameters = {{ "path.conversation_id" = "{_openai(kept)}" }}',
        *_deleting("/conversations/{conversation_id}", doomed),
        *_deleting("/users/{user_id}", "nobody", "user_id"),  # erasing the end user of a key would revoke the key
        *_deleting("/v1/conversations/{conversation_id}", _openai(doomed)),
    ]
    names = sorted({name for where, _ in EXCLUDED_AT.values() for name in where})
    for name in names:
        lines_ += ["[[operations]]", f"include-name = {json.dumps(name)}"]
        lines_ += [f"checks.{check}.enabled = false" for check, (where, _) in EXCLUDED_AT.items() if name in where]
    return "\n".join(lines_) + "\n"


def _deleting(path: str, id_: str, name: str = "conversation_id") -> tuple[str, ...]:
    return (
        "[[operations]]",
        f'include-name = "DELETE {path}"',
        f'parameters = {{ "path.{name}" = "{id_}" }}',
    )


def _openai(id_: str) -> str:
    return f"conv_{id_.replace('-', '')}"


def _run(
    target: Target, key: str | None, config: Path, events: Path, phases: tuple[str, ...], seed: int, examples: int
) -> None:
    argv = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", str(ROOT / "openapi.json")]
    argv += ["--url", target.url, "--phases", ",".join(phases), "-n", str(examples), "--seed", str(seed), "-w", "1"]
    argv += ["--no-shrink", "--no-color", "--generation-database", "none", "--report-ndjson-path", str(events)]
    for name, value in target.headers(key).items():
        argv += ["-H", f"{name}: {value}"]
    done = subprocess.run(argv, cwd=config.parent, check=False, capture_output=True, text=True, timeout=PATIENCE)
    if not events.exists():
        raise RuntimeError(f"schemathesis did not run: {done.stdout[-500:]}{done.stderr[-500:]}")


def read(events: Path, key: str, outcome: Outcome) -> None:
    """Count what a run did, and note what failed; cases without a verdict are counted as *inconclusive*."""
    for line in events.read_text(encoding="utf-8").splitlines():
        event: Mapping[str, Any] = json.loads(line)
        if "NonFatalError" in event:
            outcome.counts["inconclusive"] += 1
            print(f"inconclusive as {key}: {str(event['NonFatalError'])[:300]}")
        if "ScenarioFinished" in event:
            recorder = event["ScenarioFinished"]["recorder"]
            outcome.counts["requests"] += len(recorder.get("interactions") or ())
            for failure in failures(recorder):
                outcome.found(failure["check"], f"{recorder['label']} as {key}", failure["evidence"])


def failures(recorder: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The failures of one scenario, each check once."""
    seen: set[str] = set()
    for case, checks in (recorder.get("checks") or {}).items():
        for check in checks:
            if check["status"] == "success" or check["name"] in seen:
                continue
            seen.add(check["name"])
            interaction = (recorder.get("interactions") or {}).get(case) or {}
            yield {"check": check["name"], "evidence": f"{_message(check)} {_exchange(interaction)}"}


def _message(check: Mapping[str, Any]) -> str:
    failure = (check.get("failure_info") or {}).get("failure") or {}
    return str(failure.get("message") or failure.get("title") or "").replace("\n", " ")[:200]


def _exchange(interaction: Mapping[str, Any]) -> str:
    request, response = interaction.get("request") or {}, interaction.get("response") or {}
    asked = f"{request.get('method')} {request.get('uri')} {_decoded(request.get('body'))[:200]}"
    return f"{asked} → {response.get('status_code')} {_decoded(response.get('content'))[:200]}"


def _decoded(body: Any) -> str:
    if isinstance(body, Mapping) and "$base64" in body:
        return base64.b64decode(body["$base64"]).decode(errors="replace")
    return str(body or "")
