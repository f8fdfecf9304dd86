"""Writes the OpenAPI document that is checked in: ``python -m app.http.openapi [path]``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from app.http.application import build_app
from app.settings import Settings

CHECKED_IN: Final = Path(__file__).resolve().parents[2] / "openapi.json"


def document() -> str:
    """The document as text. No setting of the machine changes it."""
    app = build_app(Settings.model_construct())
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False, sort_keys=False) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m app.http.openapi", description="Write the OpenAPI document.")
    parser.add_argument("path", nargs="?", type=Path, default=CHECKED_IN, help="where to (the one that is checked in)")
    parser.parse_args().path.write_text(document(), encoding="utf-8")
