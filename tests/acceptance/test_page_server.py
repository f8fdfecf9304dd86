"""The page's server of its own, as ``npm run build:server`` makes it: driven by ``web/tests/server.test.mjs``."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Final

import pytest

from tests.acceptance.conftest import SharedServices
from tests.servers import ROOT

WEB: Final = ROOT / "web"
PATIENCE: Final = 1_800

pytestmark = [pytest.mark.long]


def test_the_server_of_its_own(shared_services: SharedServices) -> None:
    if shutil.which("npm") is None or not (WEB / "node_modules" / "next").is_dir():
        pytest.skip("needs a package index: `make test-page` installs what builds the page")
    service = shared_services.get("page", processes=False)
    environment = {**os.environ, "THROUGHLINE_URL": service.url, "NEXT_TELEMETRY_DISABLED": "1"}
    for argv in (["npm", "run", "build:server"], ["node", "--test", "--test-reporter=spec", "tests/server.test.mjs"]):
        done = subprocess.run(
            argv, cwd=WEB, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-4_000:]
        assert "# skipped 0" in done.stdout or "skipped 0" in done.stdout or argv[0] == "npm"
