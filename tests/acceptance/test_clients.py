"""Both clients do the steps of one scenario, ``tests/scenarios/clients.json``, and are held to the same expectations.

They reach the service by a way that has faults: requests that are refused, answers that are lost, streams that
are cut.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from pydantic import BaseModel

from app.client import ApiError, ChatEvent, ContextCompressor, Retrying, Throughline, ThroughlineError
from app.client.methods import Methods
from tests.acceptance.faulty import FaultyWay, faulty_way
from tests.acceptance.service import Service
from tests.acceptance.talk import lines
from tests.servers import ROOT

SCENARIO: Final = ROOT / "tests" / "scenarios" / "clients.json"
STEPS: Final[Sequence[dict[str, Any]]] = json.loads(SCENARIO.read_text(encoding="utf-8"))
PACKAGE: Final = ROOT / "clients" / "typescript"
PATIENCE: Final = 300
Outcome = Mapping[str, Any]
"""The key of the outcome: ``value`` or ``error``."""


class UnexpectedError(AssertionError):
    """The outcome of a step differs from the scenario."""


def known_values(client: str) -> dict[str, Any]:
    """The values to which the steps may refer from the beginning."""
    return {"client": client, "lines": [{"role": role, "content": content} for role, content in lines(60)]}


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """A value in which each ``$name`` is replaced by what is known under that name."""
    match value:
        case str() if value.startswith("$") and value[1:] in values:
            return values[value[1:]]
        case str():
            return value.replace("$client", values["client"])
        case list():
            return [filled(one, values) for one in value]
        case dict():
            return {name: filled(one, values) for name, one in value.items()}
    return value


def found(value: Any, path: str) -> Any:
    """The value at a path; ``count`` and ``last`` work on a list, ``text`` and ``types`` on a stream."""
    for step in path.split(".") if path else ():
        match step:
            case "count":
                value = len(value)
            case "last":
                value = value[-1]
            case "text":
                value = "".join(one["data"]["text"] for one in value if one["type"] == "reply.delta")
            case "types":
                value = [one["type"] for one in value]
            case _:
                value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def judge(step: Mapping[str, Any], outcome: Outcome, values: Mapping[str, Any]) -> None:
    """Insist that the outcome of a step is the expected one."""
    if "fails" in step:
        error = outcome.get("error") or {}
        told = {name: error.get(name) for name in step["fails"]}
        if told != step["fails"]:
            raise UnexpectedError(f"{step}: {outcome}")
        return
    if "error" in outcome:
        raise UnexpectedError(f"{step}: {outcome}")
    for path, expected in filled(step["expect"], values).items():
        there = found(outcome["value"], path)
        if not _is(there, expected):
            raise UnexpectedError(f"{step}: at {path!r} is {str(there)[:300]!r}")


def _is(there: Any, expected: Any) -> bool:
    match expected:
        case {"at_least": least}:
            return bool(there >= least)
        case {"has": part}:
            return bool(part in there)
        case {"type": name}:
            return bool(type(there).__name__ == name)
    return bool(there == expected)


def judge_all(outcomes: Sequence[Outcome], values: Mapping[str, Any]) -> None:
    """Insist that each step was done and had the expected outcome."""
    for step, outcome in itertools.zip_longest(STEPS, outcomes):
        judge(step, outcome or {"error": "not done"}, values)


def by_python(url: str) -> tuple[list[Outcome], dict[str, Any]]:
    """Let the Python client do the steps."""
    outcomes, values = list[Outcome](), known_values("python")
    with Throughline(url, trust_env=False, retrying=Retrying(first_pause=0.01)) as client:
        for step in STEPS:
            if "fault" in step:
                httpx.post(f"{url}/fault", json=step["fault"], trust_env=False)
            try:
                value = _done(client, step, values)
            except ThroughlineError as error:
                outcomes.append({"error": _told(error)})
                continue
            values |= {name: found(value, path) for name, path in step.get("save", {}).items()}
            outcomes.append({"value": value})
    return outcomes, values


def _done(client: Throughline, step: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    given = filled({name: one for name, one in step.items() if name not in {"expect", "fails"}}, values)
    of = given.get("of", [])
    if "engine" in given:
        args = [tuple(one) if isinstance(one, list) else one for one in given["args"]]
        return _json(getattr(ContextCompressor(client, of[0]), given["engine"])(*args))
    made = getattr(client, given["call"])(*of, **given.get("body", {}), **given.get("options", {}))
    if isinstance(made, Iterator):
        made = list(itertools.islice(made, given.get("take")))
    return _json(made)


def _json(value: Any) -> Any:
    if isinstance(value, list | bytes):
        return [_json(one) for one in value]
    if isinstance(value, ChatEvent):
        number = {} if value.id is None else {"id": value.id}
        return {"type": value.type, **number, "data": _json(value.result) if value.result else dict(value.data)}
    return value.model_dump(mode="json", exclude_unset=True) if isinstance(value, BaseModel) else value


def _told(error: ThroughlineError) -> dict[str, Any]:
    if not isinstance(error, ApiError):
        return {"class": type(error).__name__}
    members = {"status": error.status, "code": error.code, "retryable": error.retryable}
    return {"class": type(error).__name__, **members, "fields": [one["field"] for one in error.errors]}


def by_typescript(url: str, package: Path) -> tuple[list[Outcome], dict[str, Any]]:
    """Let the TypeScript client do the steps."""
    known = json.dumps(known_values("typescript"))
    argv: list[str | Path] = ["node", package / "test" / "scenario.mjs", url, SCENARIO, known]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr}"
    told = json.loads(done.stdout)
    return told["outcomes"], told["values"]


def shape(value: Any) -> Any:
    """The names of all fields, however deep they are nested."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else None


@pytest.fixture
def way(offline: Service) -> Iterator[tuple[str, FaultyWay]]:
    with faulty_way(offline.url) as found_way:
        yield found_way


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The TypeScript client, built in a folder of its own."""
    folder = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    for argv in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "--silent", "build"]):
        try:
            done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except OSError as error:
            pytest.skip(f"the packages of the example cannot be installed here: {error}")
        if done.returncode and argv[1] == "ci":
            pytest.skip(f"the packages of the example cannot be installed here: {done.stderr[-200:]}")
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_method_is_in_the_scenario() -> None:
    called = {step.get("call") for step in STEPS}
    assert {name for name in vars(Methods) if not name.startswith("_")} - called == set()
    assert {step["engine"] for step in STEPS if "engine" in step} == {"compress", "expand", "assemble_context"}


def test_control_what_is_not_expected_is_seen() -> None:
    step = {"call": "usage", "expect": {"tokens": {"at_least": 3}, "status": "ok"}}
    fails = {"call": "usage", "fails": {"class": "NotFoundError", "status": 404}}
    values = known_values("nobody")
    judge(step, {"value": {"tokens": 3, "status": "ok"}}, values)
    judge(fails, {"error": {"class": "NotFoundError", "status": 404, "code": "not_found"}}, values)
    wrong: list[tuple[Any, Outcome]] = [
        (step, {"value": {"tokens": 2, "status": "ok"}}),
        (step, {"value": {"tokens": 3, "status": "over"}}),
        (step, {"error": {}}),
        (fails, {"value": {}}),
        (fails, {"error": {"class": "ApiError", "status": 404}}),
    ]
    for asked, outcome in wrong:
        with pytest.raises(UnexpectedError):
            judge(asked, outcome, values)
    with pytest.raises(UnexpectedError):
        judge_all([], values)


@pytest.mark.long
def test_both_clients_do_the_same(way: tuple[str, FaultyWay], package: Path) -> None:
    url, faults = way
    python, values = by_python(url)
    judge_all(python, values)
    met = list(faults.met)
    assert len(met) == sum(
        min(step["fault"].get("times", 1), 5) for step in STEPS if "clear" not in step.get("fault", {"clear": 1})
    )
    typescript, values = by_typescript(url, package)
    judge_all(typescript, values)
    assert faults.met == met + met
    for step, one, other in zip(STEPS, python, typescript, strict=True):
        if "text" not in step.get("expect", {}):  # a stream may come in more or fewer pieces
            assert shape(one) == shape(other), step


def test_what_the_page_has_for_python_runs_from_one_block_to_the_next(offline: Service, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    pasted = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    endless = "print(event.id, event.type)  # goes on for ever"
    assert pasted.count(endless) == 1
    script = tmp_path / "pasted.py"
    ended = pasted.replace(endless, "print(event.id, event.type); break")
    script.write_text(ended.replace("http://localhost:8000", offline.url), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "18,500 euros" in done.stdout
    assert "1 message.created" in done.stdout
    assert "choose an earlier range" in done.stdout
