"""The site's first page is the README, and it has the files beside ``docs/`` that pages link to.

A hook of MkDocs (see ``mkdocs.yml``). Pages are written for a reader of the repository: a link such as
``../openapi.json`` leads out of ``docs/``. Here it is turned into the place that the file has on the site. A link to
anything else outside ``docs/`` is left as it is, and fails the build.
"""

# ruff: noqa: INP001 - a hook that MkDocs loads by its path

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = "docs/"
BESIDE: Final = {
    "README.md": "index.md",
    ".env.example": "env.example",  # MkDocs leaves out what begins with a dot
    **{
        name: name
        for name in (
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "LICENSE",
            "openapi.json",
            "throughline.example.yaml",
            "examples/own_model.py",
        )
    },
}
"""Files of the project and their places on the site."""
_IN_PROJECT: Final = {place: name for name, place in BESIDE.items()}
_LINK: Final = re.compile(r"(?<=\]\()(?P<path>[^()\s:#]+)(?=(?:#[^()\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that stand beside ``docs/``."""
    for name, place in BESIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links within the project into links within the site."""
    return _LINK.sub(partial(_on_site, page.file.src_uri), markdown)


def _on_site(page: str, link: re.Match[str]) -> str:
    here = _IN_PROJECT.get(page, DOCS + page)
    target = normpath(join(dirname(here), link["path"]))
    place = target.removeprefix(DOCS) if target.startswith(DOCS) else BESIDE.get(target)
    return link["path"] if place is None else relpath(place, dirname(page) or ".")
