"""What the page is made of, and a hash of it: the archive records it, and a test compares it with the tree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

WEB: Final = Path(__file__).parent.parent
FILES: Final = (
    "package.json",
    "package-lock.json",
    "next.config.mjs",
    "postcss.config.mjs",
    "tsconfig.json",
    "scripts/build-id.mjs",
    "scripts/pack.py",
)
FOLDERS: Final = ("src",)
GENERATED: Final = frozenset({"src/api/schema.d.ts"})
"""Types alone, made of openapi.json: nothing of them is left in a build."""
SERVER_ALONE: Final = ("src/server/", "src/app/api/", "src/app/session/", "src/proxy.ts", "src/instrumentation")
"""What only the server of its own has."""


def sources(web: Path = WEB) -> Iterator[str]:
    """The paths below ``web``, in their order."""
    below = (path.relative_to(web).as_posix() for name in FOLDERS for path in (web / name).rglob("*") if path.is_file())
    yield from sorted(name for name in {*FILES, *below} if name not in GENERATED and not name.startswith(SERVER_ALONE))


def fingerprint(web: Path = WEB) -> str:
    """SHA-256 of all sources, in hexadecimal."""
    total = hashlib.sha256()
    for name in sources(web):
        digest = hashlib.sha256((web / name).read_bytes()).hexdigest()
        total.update(f"{name} {digest}\n".encode())
    return total.hexdigest()
