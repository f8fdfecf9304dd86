"""The TypeScript client and the rest: its lock, version and schema, and that it offers what the Python one does."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
from typing import Any, Final

import pytest

from app.client import ContextCompressor, errors
from app.client.methods import Methods
from app.http.openapi import CHECKED_IN

ROOT: Final = CHECKED_IN.parent
PACKAGE: Final = ROOT / "clients" / "typescript"
MANIFEST: Final[dict[str, Any]] = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
LOCK: Final = (PACKAGE / "package-lock.json").read_text(encoding="utf-8")
CLIENT: Final = (PACKAGE / "src" / "client.ts").read_text(encoding="utf-8")
METHOD: Final = re.compile(r"^  (?!private|constructor|return)(?:async )?(\w+)\(", re.MULTILINE)


def camel(name: str) -> str:
    """A name in TypeScript's spelling."""
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def source(name: str) -> str:
    return (PACKAGE / "src" / name).read_text(encoding="utf-8")


def methods_in(text: str) -> set[str]:
    """The public methods of a class, found in its source."""
    return set(METHOD.findall(text))


def addresses_in(lock: Any) -> list[str]:
    """Addresses of package hosts; addresses for funding are allowed."""
    packages: dict[str, dict[str, Any]] = lock["packages"]
    told = json.dumps([{name: one[name] for name in one if name != "funding"} for one in packages.values()])
    return re.findall(r'"resolved"|https?:[^"]*', told)


def test_the_lock_names_no_package_host() -> None:
    assert addresses_in(json.loads(LOCK)) == []
    assert "omit-lockfile-registry-resolved=true" in (PACKAGE / ".npmrc").read_text(encoding="utf-8").splitlines()
    locked = json.loads(LOCK)["packages"]
    assert all("integrity" in one for path, one in locked.items() if path)


def test_control_a_lock_that_names_one_is_seen() -> None:
    lock = json.loads(LOCK)
    lock["packages"]["node_modules/openapi-fetch"]["resolved"] = "https://elsewhere.test/openapi-fetch-0.17.0.tgz"
    assert addresses_in(lock) == ['"resolved"', "https://elsewhere.test/openapi-fetch-0.17.0.tgz"]


def test_the_package_is_that_of_this_version_and_pins_what_it_was_tried_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (MANIFEST["name"], MANIFEST["version"]) == ("@throughline/client", project["version"])
    assert (MANIFEST["license"], MANIFEST["type"]) == ("Apache-2.0", "module")
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    pinned = {**MANIFEST["dependencies"], **MANIFEST["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in pinned.values()), pinned
    assert MANIFEST["dependencies"].keys() == {"openapi-fetch", "eventsource-parser"}


def test_what_is_built_or_installed_is_not_committed() -> None:
    tracked = subprocess.run(["git", "ls-files", PACKAGE], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("needs the git history: this is no clone")
    assert not re.search(r"node_modules|/dist/", tracked.stdout)


def test_the_schema_is_made_of_this_document() -> None:
    digest = hashlib.sha256(CHECKED_IN.read_bytes()).hexdigest()
    head = source("schema.d.ts")[:300]
    assert f"// sha256 of openapi.json: {digest}\n" in head, "run 'make openapi' where there is npm, and commit"


def test_both_clients_have_the_same_operations() -> None:
    ours = {camel(name) for name in vars(Methods) if not name.startswith("_")}
    assert methods_in(CLIENT) == ours


def test_both_clients_have_the_engines_interface() -> None:
    ours = {camel(name) for name in vars(ContextCompressor) if not name.startswith("_")}
    assert ours == {"compress", "expand", "assembleContext"}
    assert methods_in(source("compressor.ts")) == ours


def test_both_clients_have_the_same_errors() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    there = re.findall(r"export class (\w+) extends (\w+)", source("errors.ts"))
    assert dict(there) == {kind.__name__: kind.__mro__[1].__name__.replace("Exception", "Error") for kind in kinds}
    statuses = {
        int(status): name for status, name in re.findall(r"^  (\d{3}): (\w+),", source("errors.ts"), re.MULTILINE)
    }
    assert statuses == {status: kind.__name__ for status, kind in errors._CLASSES.items()}


def test_control_an_operation_that_one_client_lacks_is_seen() -> None:
    without = CLIENT.replace("  pinMessage(", "  private pinMessage(").replace("  usage(", "  fullness(")
    assert methods_in(CLIENT) ^ methods_in(without) == {"pinMessage", "usage", "fullness"}
