"""Model calls that nobody waits for (details, verifications): how often they are tried, and when they give way."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from app.storage.unit_of_work import UnitOfWork

MAX_TRIES: Final = 3
BACK_OFF: Final = timedelta(minutes=1)
_LONG_BACK_OFF: Final = timedelta(minutes=10)
COMPACTION_PAUSE: Final = timedelta(seconds=15)
"""After how long they are looked at again if a compaction of the conversation runs."""
_PATIENCE: Final = timedelta(seconds=1)
"""A compaction that has waited longer than this finds no worker free."""


def back_off(tries: int) -> timedelta:
    """The pause after this number of failures; after ``MAX_TRIES`` failures there is no further try."""
    return BACK_OFF if tries < 2 else _LONG_BACK_OFF  # noqa: PLR2004 - the second failure


async def is_compaction_waiting(uow: UnitOfWork) -> bool:
    """Whether a compaction of any conversation finds no worker free."""
    return bool(await uow.compactions.unsent(older_than=_PATIENCE, limit=1))
