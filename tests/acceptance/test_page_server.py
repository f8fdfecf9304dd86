"""What npm builds from ``web/``: the committed archive, and the page's own server.

The latter is driven by ``web/tests/server.test.mjs``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from typing import Final

import pytest

from tests.acceptance.conftest import SharedServices
from tests.servers import ROOT

WEB: Final = ROOT / "web"
PATIENCE: Final = 1_800
PACKED_BESIDE: Final = {"THIRD-PARTY-LICENSES.txt", "build.json"}
"""Files that ``web/scripts/pack.py`` adds to the archive, and that no build has."""

pytestmark = [pytest.mark.long]


@pytest.fixture(autouse=True)
def _npm() -> None:
    if shutil.which("npm") is None or not (WEB / "node_modules" / "next").is_dir():
        pytest.skip("needs a package index: `make test-page` installs what builds the page")


def test_the_archive_is_what_its_sources_build() -> None:
    environment = {**os.environ, "NEXT_TELEMETRY_DISABLED": "1"}
    run(["npm", "run", "build"], environment)
    out = WEB / "out"
    built = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with zipfile.ZipFile(ROOT / "app" / "ui" / "ui.zip") as archive:
        packed = {name: archive.read(name) for name in archive.namelist() if name not in PACKED_BESIDE}
    assert len(built) > 20
    assert {name for name in built.keys() | packed.keys() if built.get(name) != packed.get(name)} == set()


def test_the_server_of_its_own(shared_services: SharedServices) -> None:
    service = shared_services.get("page", processes=False)
    environment = {**os.environ, "THROUGHLINE_URL": service.url, "NEXT_TELEMETRY_DISABLED": "1"}
    run(["npm", "run", "build:server"], environment)
    told = run(["node", "--test", "--test-reporter=spec", "tests/server.test.mjs"], environment)
    assert "skipped 0" in told


def run(argv: list[str], environment: dict[str, str]) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(argv, cwd=WEB, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-4_000:]
    return done.stdout
