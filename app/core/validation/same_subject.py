"""Whether a statement is about the same as an earlier one that it is said to replace."""

from __future__ import annotations

from typing import Final

from app.core.validation.evidence import content

_KEPT: Final = 0.6
"""Of the earlier statement's content words. In the open half of the corpus of ``bench.trust`` 37 % of the honest
replacements keep as many; the most that an invented one keeps is 44 %. It is set well above that, since what is set
aside in vain is served in doubt until a verifier reads it, and what is taken away in vain is lost."""


def is_about_same(statement: str, earlier: str) -> bool:
    """Whether a statement says much of what an earlier one says, as one that changes, completes or joins it does."""
    before = content(earlier)
    return bool(before) and len(before & content(statement)) >= _KEPT * len(before)
