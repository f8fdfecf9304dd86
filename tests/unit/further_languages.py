"""Languages that a test adds to those in which anchors are found."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import app.core.anchors
from app.core.anchors.tables import TABLES, tables_of
from app.core.text.languages.loading import read_languages
from app.core.text.memo import forget


@contextmanager
def languages_of(folder: Path) -> Iterator[None]:
    """Find anchors in the languages of this folder's files too, and forget all earlier readings."""
    names = [name for _, name, _ in pkgutil.walk_packages(app.core.anchors.__path__, "app.core.anchors.")]
    modules = [sys.modules[name] for name in names if hasattr(sys.modules.get(name), "TABLES")]
    tables = (*TABLES, *tables_of(read_languages(folder)))
    forget()
    with ExitStack() as patched:
        for module in modules:
            patched.enter_context(mock.patch.object(module, "TABLES", tables))
        yield
    forget()
