"""The client is a package of its own: it installs without the service, and imports nothing of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
CLIENT: Final = ROOT / "app" / "client"


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def test_version_and_bounds_are_those_of_the_service() -> None:
    service, client = project(ROOT), project(CLIENT)
    assert (client["version"], client["requires-python"]) == (service["version"], service["requires-python"])
    assert set(client["dependencies"]) < set(service["dependencies"])


@pytest.mark.long
def test_a_wheel_of_it_is_imported_without_the_service(tmp_path: Path) -> None:
    copy, wheels = tmp_path / "client", tmp_path / "wheels"
    shutil.copytree(CLIENT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        str(wheels),
        str(copy),
    ]
    subprocess.run(pip, check=True)
    [wheel] = wheels.iterdir()
    look = (
        "import sys, throughline_client as client; "
        "assert client.__file__.startswith(sys.argv[1]), client.__file__; "
        "print(sorted(name for name in sys.modules if name.split('.')[0] in {'app', 'fastapi', 'sqlalchemy'}), "
        "client.Throughline('http://127.0.0.1:9').__class__.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", look, str(wheel)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(wheel)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[] Throughline\n"
