"""Files that are shipped with the code, checked by reading them: no Docker engine and no network is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings

ROOT = Path(__file__).resolve().parent.parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-bench.lock")
LONG_RUNNING = ("postgres", "redis", "api", "worker", "web")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def environment_names() -> set[str]:
    """The names of the environment variables of the settings."""
    fields = Settings.model_fields.items()
    return {str(field.validation_alias or f"THROUGHLINE_{name.upper()}") for name, field in fields}


def requirements(lock: str) -> dict[str, str]:
    """Each pinned package with the lines that belong to it."""
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / lock).read_text(), flags=re.MULTILINE)
    return {block.split("==")[0].split("[")[0].strip(): block for block in blocks if block.strip()}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_by_hash(lock: str) -> None:
    pinned = requirements(lock)
    assert len(pinned) > 50
    assert not [name for name, block in pinned.items() if "--hash=sha256:" not in block or "==" not in block]


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_name_no_package_host(lock: str) -> None:
    assert not re.search(r"://|--index|--extra-index|--find-links|file:|@ ", (ROOT / lock).read_text())


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_what_tests_and_benchmarks_install_contains_what_running_installs(lock: str) -> None:
    run, more = ({name: block.splitlines()[0] for name, block in requirements(one).items()} for one in (LOCKS[0], lock))
    assert run.items() <= more.items()


def test_benchmarks_use_the_versions_that_the_tests_use() -> None:
    test, bench = ({name: block.splitlines()[0] for name, block in requirements(one).items()} for one in LOCKS[1:])
    both = test.keys() & bench.keys()
    assert {name: test[name] for name in both} == {name: bench[name] for name in both}


def test_the_build_backend_is_locked() -> None:
    assert "setuptools" in requirements("requirements.lock")


def test_a_bare_make_prints_help_for_every_target() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    targets = "help setup run demo test test-all test-processes coverage check format lock openapi clean"
    for target in targets.split():
        assert re.search(rf"^  make {target}\s+\S", shown, flags=re.MULTILINE), target


@pytest.mark.parametrize("python", ["true-but-absent", "/bin/false"])
def test_a_python_that_does_not_fit_is_one_clear_line(python: str) -> None:
    tried = subprocess.run(["make", "run", f"PYTHON={python}"], cwd=ROOT, check=False, capture_output=True, text=True)
    lines = tried.stderr.strip().splitlines()
    assert tried.returncode != 0
    assert len(lines) == 1
    assert "Python 3.11 or newer" in lines[0]


def test_ci_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    commands = [line for line in script.read_text().splitlines() if line.startswith("make ")]
    assert [command.split()[1] for command in commands] == ["check", "test", "test-processes"]
    assert script.read_text().splitlines()[-1] == commands[-1], "the last line shown is the test runner's"


def test_compose_starts_things_in_order(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {*LONG_RUNNING, "migrate", "key"}
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("api", "worker"):
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        assert services[name]["depends_on"]["redis"]["condition"] == "service_healthy"
    for name in LONG_RUNNING:
        assert services[name]["healthcheck"]["test"]
        assert services[name]["stop_grace_period"]


def test_compose_needs_nothing_but_one_command(compose: dict[str, Any]) -> None:
    assert ":?" not in (ROOT / "docker-compose.yml").read_text(), "nothing has to be set before"
    services = compose["services"]
    assert services["api"]["depends_on"]["key"] == {"condition": "service_completed_successfully"}
    assert services["web"]["depends_on"] == {"api": {"condition": "service_healthy"}}


def test_the_page_without_a_login_is_published_on_loopback_alone(compose: dict[str, Any]) -> None:
    web = compose["services"]["web"]
    assert [port.startswith("127.0.0.1:") for port in web["ports"]] == [True], "no setting opens it by mistake"
    assert web["environment"]["WEB_PUBLISHED_ON_LOOPBACK"] == "true"
    assert (web["read_only"], web["cap_drop"]) == (True, ["ALL"])
    assert "THROUGHLINE_API_KEY" not in web["environment"], "the key is in no environment"
    holders = {name for name, one in compose["services"].items() if "key:/run/throughline" in str(one.get("volumes"))}
    assert holders == {"key", "web"}
    assert "--scope admin" not in str(compose["services"]["key"]["command"])


def test_the_image_of_the_page_is_slim_unprivileged_and_locked() -> None:
    text = (ROOT / "web" / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, flags=re.MULTILINE) == ["node:20-slim"] * 2
    assert "npm ci" in text
    assert "\nUSER 1000:1000\n" in text
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, flags=re.MULTILINE)
    assert not [name for line in copied for name in line.split() if not (ROOT / name).exists()]


def test_compose_keeps_the_queue_and_locks_the_containers_down(compose: dict[str, Any]) -> None:
    command = " ".join(compose["services"]["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command
    for name in ("api", "worker", "migrate", "key"):
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["environment"]["THROUGHLINE_AUTH_REQUIRED"] == "true"


def test_compose_starts_again_what_the_watchdog_ends(compose: dict[str, Any]) -> None:
    for name in ("api", "worker"):
        assert compose["services"][name]["restart"] == "unless-stopped"


def test_compose_sets_only_what_the_settings_know(compose: dict[str, Any]) -> None:
    for name in ("api", "worker", "migrate"):
        assert set(compose["services"][name]["environment"]) <= environment_names(), name


def test_compose_is_accepted_by_docker(tmp_path: Path) -> None:
    if not shutil.which("docker") or subprocess.run(["docker", "compose", "version"], check=False).returncode != 0:
        pytest.skip("docker compose is not installed")
    shutil.copy(ROOT / "docker-compose.yml", tmp_path)
    (tmp_path / ".env").write_text("POSTGRES_PASSWORD=secret\n")
    subprocess.run(["docker", "compose", "config", "-q"], cwd=tmp_path, check=True)


def test_the_image_is_slim_unprivileged_and_checked_by_hash() -> None:
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    instructions = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert [value.split()[0] for word, value in instructions if word == "FROM"] == ["python:3.12-slim"] * 2
    assert ["USER", "10001:10001"] in instructions
    assert "--require-hashes" in text
    assert instructions[-1][0] == "CMD"


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile"])
def test_locked_packages_are_installed_without_asking_for_others(name: str) -> None:
    """A lock names all packages; older pips look for newer releases if a dependency asks for an extra."""
    installs = re.findall(r" install (.*-r .*\.lock)", (ROOT / name).read_text())
    assert installs
    assert all("--no-deps --require-hashes" in line for line in installs), installs


def test_the_lock_holds_everything_that_its_packages_need() -> None:
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_image_copies_only_what_its_context_lets_in() -> None:
    let_in = {line[1:].rstrip("/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert {name for line in copied for name in line.split()} == let_in
    assert not [name for name in let_in if not (ROOT / name).exists()]


def test_the_example_environment_names_real_settings() -> None:
    named = set(re.findall(r"^(?:# )?([A-Z][A-Z_]+)=", (ROOT / ".env.example").read_text(), flags=re.MULTILINE))
    offered, known = named - {"POSTGRES_PASSWORD"}, environment_names() - {"THROUGHLINE_EMBEDDED"}
    assert known - offered == set(), "settings that .env.example lacks"
    assert offered - known == set(), "no settings, but in .env.example"


def test_every_setting_stands_on_a_page() -> None:
    pages = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("running.md", "limits.md"))
    missing = {name for name in environment_names() - {"THROUGHLINE_EMBEDDED"} if f"`{name}`" not in pages}
    assert not missing, f"neither docs/running.md nor docs/limits.md has a row for {sorted(missing)}"


def test_the_example_settings_file_is_read_and_says_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    defaults = Settings(_env_file=None).model_dump()
    shutil.copy(ROOT / "throughline.example.yaml", tmp_path / "throughline.yaml")
    assert Settings(_env_file=None).model_dump() == defaults
    known = set(Settings.model_fields)
    assert set(yaml.safe_load((ROOT / "throughline.example.yaml").read_text())) <= known


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
