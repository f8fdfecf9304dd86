"""Packs the export (``web/out``) into ``app/ui/ui.zip``: the same export gives the same bytes.

Run by ``make ui``. Beside the export the archive has ``build.json`` with the hash of the sources, and the licences of
the packages that the lock names for running.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))
from sources import WEB, fingerprint

OUT: Final = WEB / "out"
ARCHIVE: Final = WEB.parent / "app" / "ui" / "ui.zip"
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
LICENCES: Final = "THIRD-PARTY-LICENSES.txt"
BUILD: Final = "build.json"
LICENCE_FILES: Final = ("LICENSE", "LICENSE.md", "LICENSE.txt", "license", "license.md", "LICENCE", "LICENSE-MIT")


def packages() -> Iterator[tuple[str, dict[str, Any]]]:
    """(path below node_modules, entry of the lock) of what runs: neither tools nor what one machine alone needs."""
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    for path, entry in sorted(lock["packages"].items()):
        if path and not entry.get("dev") and not entry.get("optional") and not entry.get("devOptional"):
            yield path, entry


def licences() -> str:
    """Every package with its licence; a text that several have in common once for each holder."""
    told = []
    for path, entry in packages():
        name = path.rpartition("node_modules/")[2]
        folder = WEB / path
        found = next((folder / one for one in LICENCE_FILES if (folder / one).is_file()), None)
        text = found.read_text("utf-8").strip() if found else ""
        told.append(f"{name} {entry['version']} ({entry.get('license', 'see its text')})\n\n{text}".rstrip())
    return f"\n\n{'-' * 78}\n\n".join(told) + "\n"


def written(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """One file, without anything of this machine or this moment."""
    info = zipfile.ZipInfo(name, EPOCH)
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    archive.writestr(info, content, compresslevel=9)


def main() -> None:
    """Write the archive."""
    files = {path.relative_to(OUT).as_posix(): path.read_bytes() for path in OUT.rglob("*") if path.is_file()}
    files[LICENCES] = licences().encode()
    files[BUILD] = json.dumps({"sources": fingerprint()}).encode()
    with zipfile.ZipFile(ARCHIVE, "w") as archive:
        for name in sorted(files):
            written(archive, name, files[name])
    print(f"{ARCHIVE.relative_to(WEB.parent)}: {len(files)} files, {ARCHIVE.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
