"""What is only supposed: it states no fact, takes the place of none, and settles nothing."""

from __future__ import annotations

import re
from typing import Final

from app.core.text.patterns import compiled

_SUPPOSED: Final = compiled(
    r"\b(?:hypothes\w+|(?:i|we) (?:suspect|assume|suppose|would guess|guess)|presumably|supposedly"
    r"|it (?:may|might|could) be|(?:might|may|could) be (?:because|due|caused)|most likely"
    r"|probably (?:because|due|caused)|my guess|гипотез\w*|предполаг\w+|предположени\w*|подозрева\w+|скорее всего"
    r"|видимо|вероятно|может быть,? (?:дело|потому)|похоже,? что)\b"
    r"|假设|猜测|可能是因为",
    re.IGNORECASE,
)


def is_supposed(text: str) -> bool:
    """Whether a text calls what it says a hypothesis, a guess or a probability."""
    return _SUPPOSED.search(text) is not None
