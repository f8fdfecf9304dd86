"""The state schema ``research``: what an agent has found out, what it supposes, and what it goes after next."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from app.domain.states.state import StateField, StateSchema


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
    fields=(
        StateField(
            name="findings",
            role="fact",
            ask=(
                "each finding with its source (title, address, document, page, tool or person) and its exact values: "
                "figures with units, dates, names, quoted words, copied character by character; requirements and "
                "limits that the user set. One per item; say how certain it is, and what contradicts it"
            ),
            use="found, with sources: cite them, do not look for them again.",
        ),
        StateField(
            name="hypotheses",
            role="open",
            ask=(
                "each working hypothesis, with what speaks for and against it; one that was refuted says so and by what"
            ),
            use="suppositions, not facts: test them.",
            takes=frozenset({"hypothesis"}),
        ),
        StateField(
            name="open_questions",
            role="open",
            ask="each question that the research has to answer and has not, contradictions between sources included",
            use="still to be answered.",
        ),
        StateField(
            name="next_actions",
            role="open",
            ask="each next thing to look into or to do, concrete enough to be begun at once, in order",
            use="what to do next, in this order.",
            takes=frozenset({"commitment", "plan"}),
        ),
        StateField(
            name="research_summary",
            role="narrative",
            ask=(
                "two to four sentences for someone who was not there: what the research is after, the course it has "
                "taken over the whole conversation, the earlier part included, and exactly where it stands"
            ),
            use="the story so far and where it stands.",
        ),
    ),
)
