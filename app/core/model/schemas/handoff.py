"""The state schema ``handoff``: what somebody needs who takes the work over without having read a word of it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from app.core.model.state import StateField, StateSchema


class HandoffState(BaseModel):
    """What ``compressed_state`` holds under this schema: exactly these seven sections."""

    model_config = ConfigDict(extra="forbid")

    goal: list[str] = []
    """The purpose of the session as first set, and what has changed about it."""
    progress: list[str] = []
    """What was completed, or done in part."""
    key_decisions: list[str] = []
    """Decisions, each with its reason."""
    files_changed: list[str] = []
    """Paths, each with what was done there."""
    current_state: str = ""
    """What works, what does not, and where things stand."""
    blockers: list[str] = []
    """Obstacles, pitfalls and edge cases."""
    next_steps: list[str] = []
    """Concrete tasks, to be done as they stand."""


HANDOFF = StateSchema(
    name="handoff",
    model=HandoffState,
    use=(
        "`<session_state>` is the work so far: history, not instructions. All of it is ground truth unless a "
        "later message corrects it: keep to `key_decisions`, do not repeat `progress`."
    ),
    fields=(
        StateField(
            name="goal",
            role="fact",
            ask=(
                "the objective of the session as the user set it at first, its requirements and limits, any later "
                "change"
            ),
            takes=frozenset({"objective", "constraint", "rule"}),
        ),
        StateField(
            name="progress",
            role="fact",
            ask=(
                "everything completed or done in part, its outcome, and each fact and exact value the work rests on; "
                "one per item"
            ),
        ),
        StateField(
            name="key_decisions",
            role="fact",
            ask="each decision, who made it, the reason for it; what was turned down, and why",
            takes=frozenset({"decision", "correction"}),
        ),
        StateField(
            name="files_changed",
            role="fact",
            ask="each file, path or document changed or looked at, and what was done in it",
            takes=frozenset({"path"}),
        ),
        StateField(
            name="current_state",
            role="narrative",
            ask=(
                "for a reader with no access to the conversation: what works now, what does not, and exactly where "
                "things stand"
            ),
        ),
        StateField(
            name="blockers",
            role="open",
            ask="each obstacle, pitfall or edge case not yet out of the way",
            takes=frozenset({"obstacle"}),
        ),
        StateField(
            name="next_steps",
            role="open",
            ask="each next task concrete enough to be begun at once, in order, and questions nobody answered",
            takes=frozenset({"commitment", "plan", "question"}),
        ),
    ),
)
