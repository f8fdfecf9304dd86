"""The presets: the published designs, each as one policy. Data, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.core.model.policies.policy import CompactionPolicy, Keep, Threshold, Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A policy under a name."""

    name: str
    title: str
    design: str
    """The name under which the design was published; for a preset of your own, its title."""
    description: str
    policy: CompactionPolicy
    version: int = 1
    """One more with each release that changes ``policy``: what was made with a version keeps that version's policy."""
    earlier: Mapping[int, CompactionPolicy] = field(default_factory=dict)
    """The policies of the versions before this one, as they were."""
    own_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The design's own names of numbers, each with the policy fields that it stands for; ``*`` is every trigger."""

    @property
    def policies(self) -> Mapping[int, CompactionPolicy]:
        """The policy of every known version, the present one first."""
        return {self.version: self.policy, **self.earlier}

    def known_version(self, version: int | None) -> int:
        """That version, or the present one if it is unknown or ``None``.

        A version is unknown to a service that is older than the one that set it.
        """
        return self.version if version is None or version not in self.earlier else version


_BACKGROUND: Final = Trigger(name="background", on="stored", at=Threshold(share=0.70), run="background")
_SYNC: Final = Trigger(name="sync", on="before_call", at=Threshold(share=0.85), run="inline")
_CRITICAL: Final = Threshold(window=0.90)

SEMANTIC: Final = Preset(
    name="semantic",
    title="Session State Compression",
    design="Session State Compression",
    description="Old messages become a structured state of facts, tone, shared concepts and a narrative.",
    policy=CompactionPolicy(triggers=(_BACKGROUND, _SYNC), state_cap=800, recall="auto"),
)

HANDOFF: Final = Preset(
    name="handoff",
    title="Session Compaction",
    design="Session Compaction",
    description="A self-contained handover in seven sections, and the last twenty messages as they were.",
    policy=CompactionPolicy(
        state_schema="handoff",
        triggers=(
            Trigger(
                name="max_tokens",
                on="before_call",
                at=Threshold(tokens=80_000, share=0.85),
                run="inline",
                keep_messages=20,
                fold="all",
            ),
        ),
        manual_keep=Keep(messages=20),
        estimator="bytes",
        state_tokens=2_000,
        levels=("L2", "L3"),
        anchor_share=0,
        protect=(),
        on_failure="keep_full",
        summarizer="chat_model",
        notifications="summary",
    ),
    own_names={"keep_tail": ("keep_tail_messages",)},
)

HIERARCHICAL: Final = Preset(
    name="hierarchical",
    title="Contextual Compression Engine",
    design="Contextual Compression Engine",
    description="Levels of detail with markers that lead back, anchors that are never compressed away, recall.",
    policy=CompactionPolicy(triggers=(_BACKGROUND, _SYNC), anchor_share=None, recall="auto"),
)

TURN_END: Final = Preset(
    name="turn_end",
    title="History Semantic Compression",
    design="History Semantic Compression",
    description="One summary in place of everything before it, when a turn ends in a nearly full window, and notices.",
    policy=CompactionPolicy(
        state_schema="summary",
        triggers=(
            Trigger(name="completion", on="completed", at=_CRITICAL, run="background", fold="all"),
            Trigger(name="interrupted", on="interrupted", at=_CRITICAL, run="background", keep_turns=1, fold="all"),
            Trigger(name="sync", on="before_call", at=_CRITICAL, run="inline", keep_turns=1, fold="all"),
            Trigger(name="mid_turn", on="between_calls", at=_CRITICAL, run="inline", keep_turns=1, fold="all"),
        ),
        manual_keep=Keep(),
        window_share=1.0,
        output_reserve=0,
        state_share=0.10,
        served_as="assistant",
        levels=(),
        anchor_share=0,
        protect=(),
        on_failure="keep_full",
        on_disconnect="interrupt",
        summarizer="chat_model",
        inject_system_context=True,
        notifications="before_and_after",
    ),
    own_names={
        "token_status_critical_threshold": ("triggers.*.at.window",),
        "history_compression_mid_turn_threshold": ("triggers.sync.at.window", "triggers.mid_turn.at.window"),
        "history_compression_target_tokens_pct": ("state_share",),
        "history_compression_keep_recent_turns_success": ("triggers.completion.keep_turns",),
        "history_compression_keep_recent_turns_mid_turn": (
            "triggers.interrupted.keep_turns",
            "triggers.sync.keep_turns",
            "triggers.mid_turn.keep_turns",
        ),
    },
)

SESSIONS: Final = Preset(
    name="sessions",
    title="Sessions Pattern",
    design="Sessions Pattern",
    description="A window of 8 000 tokens in which objectives, constraints, sign-ins and goals stay word for word.",
    policy=CompactionPolicy(
        triggers=(
            Trigger(name="background", on="stored", at=Threshold(share=0.95), run="background"),
            Trigger(name="sync", on="before_call", at=Threshold(share=0.95), run="inline"),
        ),
        context_window=8_000,
        window_share=1.0,
        output_reserve=0,
        levels=(),
        protect=("turn_0", "initial_objective", "constraint", "auth_checkpoint", "goal", "goal_statements"),
        pin_share=0.25,  # state, anchors and pins at their most add up to the target, which can thus still be met
        over_allotment="refuse",
    ),
    own_names={
        "max_tokens": ("context_window",),
        "compression_threshold": ("background_at", "sync_at"),
        "trigger_threshold": ("background_at", "sync_at"),
    },
)

RESEARCH: Final = Preset(
    name="research",
    title="Research State",
    design="Session State Compression, future",
    description="Findings with sources, hypotheses, open questions and next actions, for agents that work for days.",
    policy=CompactionPolicy(
        state_schema="research",
        triggers=(_BACKGROUND, _SYNC),
        state_tokens=2_000,
        anchor_share=0.20,
        protect=("turn_0", "constraint", "goal"),
        recall="auto",
    ),
)

SHIPPED_PRESETS: Final = (SEMANTIC, HANDOFF, HIERARCHICAL, TURN_END, SESSIONS, RESEARCH)
