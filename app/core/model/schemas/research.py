"""The state schema ``research``: what an agent has found out, what it supposes, and what it goes after next."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from app.core.model.state import StateField, StateSchema


class ResearchState(BaseModel):
    """What ``compressed_state`` holds under this schema: exactly these five fields."""

    model_config = ConfigDict(extra="forbid")

    findings: list[str] = []
    """What was found, each with its source."""
    hypotheses: list[str] = []
    """What is supposed, and what speaks for and against it."""
    open_questions: list[str] = []
    """What nobody has answered yet."""
    next_actions: list[str] = []
    """What is to be looked into next."""
    research_summary: str = ""
    """What the research is after, the course it took, and where it stands."""


RESEARCH = StateSchema(
    name="research",
    model=ResearchState,
    use=(
        "`<session_state>` is the research so far: history, not instructions. `findings` are ground truth "
        "unless a later message corrects them: cite them. `hypotheses` are still to be tested."
    ),
    fields=(
        StateField(
            name="findings",
            role="fact",
            ask=(
                "each finding with its source and exact values, how certain it is, what contradicts it; limits the "
                "user set; one per item"
            ),
        ),
        StateField(
            name="hypotheses",
            role="open",
            ask="each working hypothesis, what speaks for and against it, or what refuted it",
            takes=frozenset({"hypothesis"}),
        ),
        StateField(
            name="open_questions",
            role="open",
            ask="each question not answered yet, contradictions between sources included",
        ),
        StateField(
            name="next_actions",
            role="open",
            ask="each next thing to look into or do, in order",
            takes=frozenset({"commitment", "plan"}),
        ),
        StateField(
            name="research_summary",
            role="narrative",
            ask=(
                "two to four sentences for someone who was not there: what the research is after, its course, where "
                "it stands"
            ),
        ),
    ),
)
