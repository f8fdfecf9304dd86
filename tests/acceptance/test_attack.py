"""A small run of every part of ``python -m bench.attack`` (docs/attacks.md), and planted leaks that it has to find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.attack import document, hostile, injecting, json_bodies, sockets, twins
from bench.attack.__main__ import Part
from bench.attack.findings import Outcome
from bench.attack.target import KEYS, Target, running_target

pytestmark = [pytest.mark.long, pytest.mark.processes]

PAIRS = 2


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("attacked")
    settings = {**sockets.SETTINGS, "THROUGHLINE_REQUEST_TIMEOUT_SECONDS": "20"}
    with running_target(folder, {**KEYS, **twins.keys_for(PAIRS)}, **settings) as running:
        yield running


def held(outcome: Outcome) -> None:
    assert outcome.counts["checks"] or outcome.counts["requests"]
    assert outcome.findings == []


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(Part(attack=hostile.attack, examples=1), marks=pytest.mark.case("54")),
        pytest.param(Part(attack=json_bodies.attack, examples=1), marks=pytest.mark.case("55")),
        pytest.param(Part(attack=injecting.attack, examples=40), marks=pytest.mark.case("58")),
        pytest.param(Part(attack=twins.attack, examples=PAIRS), marks=pytest.mark.case("51")),
    ],
    ids=["strings", "json", "injections", "twins"],
)
def test_everything_holds(target: Target, part: Part) -> None:
    held(part.attack(target, 7, part.examples))
    assert "http.failed" not in target.service.api.log


@pytest.mark.case("53")
def test_the_document_holds(target: Target) -> None:
    try:
        held(document.attack(target, 7, 1))
    except document.NotInstalledError as missing:
        pytest.skip(f"needs a package index: {missing}")


def test_slow_clients_are_ended(tmp_path: Path) -> None:
    with running_target(tmp_path, KEYS, **sockets.SETTINGS) as running:
        held(sockets.attack(running, 7, 2))


@pytest.mark.control("51")
def test_control_one_key_for_both_twins_is_found(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both names belong to the same tenant, so that each sees everything of the other."""
    monkeypatch.setattr(twins, "SAME", "twins of the control")  # keys of idempotency that no other test has used
    keys = {**target.keys, "b0": target.keys["a0"], "b1": target.keys["a0"]}
    one = Target(service=target.service, keys=keys, gemini=target.gemini, openai=target.openai)
    outcome = Outcome("twins")
    mine, other = (twins.Side(one, key, f"Kestrel-{key}", whole=False) for key in ("a0", "b0"))
    for where, response, unknown in twins.hot_routes(mine, other):
        twins.judge(where, response, unknown, other, outcome)
    found = {finding.what for finding in outcome.findings}
    assert found >= {"not refused as what there is not", "tells another's from nobody's"}


def test_control_without_limits_a_silent_connection_stays(target: Target) -> None:
    """The limit is longer than the wait: the check says that the connection was not ended."""
    assert sockets.silent(target, 1.0) is None
