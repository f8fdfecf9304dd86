"""Writes what the page says in the service's own words: its catalogues, the sections that the page shows.

Run in the folder of the project: ``python web/scripts/catalogues.py``. A test compares the files with the catalogues.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.core.text.localization.catalogue import CATALOGUES, Catalogue

SECTIONS: Final = {
    "trigger": "trigger",
    "status": "status",
    "place": "place",
    "reason": "reason",
    "repair": "repair",
    "gauge": "gauge",
    "level": "level",
    "outcome": "outcome",
    "state": "state",
    "warning": "warning",
    "cli.part": "part",
    "cli.what": "what",
    "export.user": "role.user",
    "export.assistant": "role.assistant",
    "export.system": "role.system",
    "export.tool": "role.tool",
}
"""By their paths in the catalogues: what the page calls them."""
PLAIN_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {"state.logos": "facts and decisions", "state.pathos": "tone", "state.abstract": "shared concepts"}
}
"""In place of the names of a design, which the text form of a state keeps in English."""
FOLDER: Final = Path(__file__).parent.parent / "src" / "i18n" / "service"


def dumped(catalogue: Catalogue) -> str:
    """One language as the page reads it: a flat object of texts."""
    texts = {
        name + key.removeprefix(path): text
        for path, name in SECTIONS.items()
        for key, text in catalogue.messages.items()
        if (key == path or key.startswith(f"{path}.")) and not isinstance(text, Mapping)
    }
    texts |= PLAIN_WORDS.get(catalogue.language, {})
    return json.dumps(texts, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Write one file per language."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for language, catalogue in CATALOGUES.items():
        (FOLDER / f"{language}.json").write_text(dumped(catalogue), encoding="utf-8")


if __name__ == "__main__":
    main()
