"""Everything behind the routes of OpenAI's API."""

from __future__ import annotations

from dataclasses import dataclass

from app.usecases.openai.answering import StatelessAnswers
from app.usecases.openai.compacting import ArrayCompaction
from app.usecases.openai.sealed_inputs import SealedInputs
from app.usecases.openai.stored_answers import StoredAnswers
from app.usecases.openai.stored_responses import StoredResponses
from app.usecases.ports import NewId


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIServices:
    """The services, built once."""

    stateless: StatelessAnswers
    stored: StoredAnswers
    responses: StoredResponses
    compaction: ArrayCompaction
    sealed: SealedInputs
    new_id: NewId
    """Makes the ids of answers that are not stored."""
