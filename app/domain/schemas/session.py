"""The state schema ``session``: facts, tone, shared knowledge, and where things stand."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from app.domain.states.state import StateField, StateSchema


class SessionState(BaseModel):
    """What ``compressed_state`` holds under this schema: exactly these four fields."""

    model_config = ConfigDict(extra="forbid")

    logos: list[str] = []
    """Facts: who the user is, decisions, constraints, exact values and names."""
    pathos: list[str] = []
    """Tone and its direction, images and jokes in use, preferences, needs left unsaid."""
    abstract: list[str] = []
    """What both sides already understand and need not be told again."""
    conversation_summary: str = ""
    """Two or three sentences: what happened, and where things stand."""


SESSION = StateSchema(
    name="session",
    model=SessionState,
    fields=(
        StateField(
            name="logos",
            role="fact",
            ask=(
                "every hard fact that a later reply could depend on: who the user is and what they have told about "
                "themselves, people and places, decisions with their reasons, requirements and limits, promises and "
                "open tasks, code and files discussed, results from tools, and each exact value: numbers, amounts, "
                "dates, names, addresses, versions, identifiers, quoted words, copied character by character. One "
                "fact per item. Nothing of this kind may get lost: when unsure, put it in. Say who holds an opinion "
                "or made a proposal, and whether it was accepted"
            ),
            use="ground truth (details, decisions, limits, exact values) unless a later message corrects it.",
        ),
        StateField(
            name="pathos",
            role="style",
            ask=(
                "how the two talk: the user's present mood and whether it is improving, stable or worsening, the "
                "register and form of answer they like, metaphors and running jokes in use, and what they seem to "
                "need without having said so"
            ),
            use="mood and manner: match the tone, keep its metaphors and jokes alive.",
        ),
        StateField(
            name="abstract",
            role="known",
            ask=(
                "what both already share and nobody has to explain again: concepts that the user clearly masters, "
                "frameworks and terms adopted together, premises agreed on"
            ),
            use="already understood: build on it, do not explain it again.",
        ),
        StateField(
            name="conversation_summary",
            role="narrative",
            ask=(
                "two or three sentences for someone who was not there: what has happened over the whole conversation, "
                "the earlier part included, and exactly where things stand now"
            ),
            use="the story so far and where it stands.",
        ),
    ),
)
