"""Write the OpenAPI document that is checked in: ``python -m app.openapi [path]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from app.api.application import build_app
from app.settings import Settings

CHECKED_IN: Final = Path(__file__).resolve().parent.parent / "openapi.json"


def document() -> str:
    """The document as text: no setting of the machine changes it."""
    app = build_app(Settings.model_construct())
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False, sort_keys=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else CHECKED_IN).write_text(document(), encoding="utf-8")
