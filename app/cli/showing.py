"""Prints the context, state, segments, compactions and figures of a conversation for a person to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any, Final, TypeVar, cast

from app.cli.gauge_line import show_gauge
from app.cli.screen import DIM, Screen
from app.cli.terminal_language import terminal_catalogue
from app.client import (
    Compaction,
    CompactionContinuity,
    Context,
    ConversationSummary,
    Segment,
    StateDifference,
    StateVersion,
)
from app.client.resources import Stats
from app.core.model.segments import LEVEL_BY_NAME, LevelName
from app.core.text.localization.catalogue import FALLBACK, Catalogue
from app.core.text.parts import own_content

HEADING_STYLE: Final = "bold"
Found = TypeVar("Found")


def print_found(found: Found, show: Callable[[Screen, Found], None], *, as_json: bool) -> None:
    """Print what a command found: as JSON for programs, or as it is shown to people."""
    screen = Screen(terminal_catalogue())
    if as_json:
        screen.json(found)
    else:
        show(screen, found)


def show_context(screen: Screen, context: Context) -> None:
    """Print the context that a model would be sent, part by part."""
    catalogue = screen.catalogue
    rows = [
        (
            catalogue.word("cli.part", part.kind),
            catalogue.number(part.tokens),
            ranges_of(part.seqs),
            part.segment_id
            or (catalogue.text(f"cli.what.{part.kind}") if catalogue.has(f"cli.what.{part.kind}") else ""),
        )
        for part in context.sections
    ]
    columns = ("part", "tokens", "messages", "what")
    screen.table([catalogue.text(f"cli.columns.{one}") for one in columns], rows)
    for marker in context.markers:
        screen.line((catalogue.text("cli.expand", marker=marker.text), DIM))
    if context.truncated is not None:
        cut = context.truncated
        seqs = f"{cut.from_seq}–{cut.to_seq}"
        screen.line((f"{catalogue.text('cli.left_out')}: ", "yellow"), catalogue.text("cli.messages", seqs=seqs))
    for warning in context.warnings:
        screen.line((f"{catalogue.text('cli.warning')}: ", "yellow"), warning_words(warning, catalogue))
    show_gauge(screen, context.gauge)
    if context.gauge.adaptive is not None:
        screen.line((context.gauge.adaptive.explanation, DIM))


def show_messages(screen: Screen, context: Context) -> None:
    """Print the texts that a model would be sent."""
    catalogue = screen.catalogue
    for message in context.messages:
        seq = message.get("seq")
        head = role_words(str(message.get("role")), catalogue) + (
            f" · {catalogue.text('cli.show.message', seq=str(seq))}" if seq else ""
        )
        screen.line()
        screen.line((head, HEADING_STYLE))
        screen.line(str(message.get("content") or ""))
        for part in message.get("parts") or ():
            if part.get("type") != "text":
                screen.line((part_words(part, catalogue), DIM))


def part_words(part: Mapping[str, Any], catalogue: Catalogue) -> str:
    """A part of a message that is not text, in words."""
    kind = part.get("type")
    if kind == "tool_call":
        return catalogue.text("cli.show.calls", name=str(part.get("name")), arguments=str(part.get("arguments")))
    if kind == "tool_result":
        name = str(part.get("name") or part.get("tool_call_id"))
        return catalogue.text("cli.show.result", name=name, content=str(part.get("content")))
    return f"{part.get('media_type', kind)} {part.get('url', '')}".rstrip()


def show_state(screen: Screen, version: StateVersion, *, newest: int | None = None) -> None:
    """Show one version of the state, every entry with the messages that it came from."""
    catalogue = screen.catalogue
    key = "version_of" if newest and newest != version.version else "version"
    head = catalogue.text(f"cli.state.{key}", version=str(version.version), newest=str(newest))
    last = version.boundary_seq
    covers = catalogue.text("cli.state.covers", last=str(last)) if last else catalogue.text("cli.state.covers_nothing")
    screen.line((head, HEADING_STYLE), (f" · {version.state_schema} · {covers}", DIM))
    sources = {(entry["field"], entry["text"]): entry.get("from_seqs") or () for entry in version.provenance}
    for field, value in version.state.items():
        screen.line((field_words(field, catalogue), "magenta"))
        for text in [value] if isinstance(value, str) else value or ():
            seqs = sources.get((field, text), ())
            screen.line(
                "  · ", str(text) or catalogue.text("cli.nothing"), (f"  ← {ranges_of(seqs)}" if seqs else "", DIM)
            )


def show_repairs(screen: Screen, repairs: Sequence[Mapping[str, Any]], *, made_by: str = "compaction") -> None:
    """Show each repair of the summary that a version was made from; without a summary, what wrote the version."""
    catalogue = screen.catalogue
    if not repairs:
        written = {"erasure": "by_erasure", "restore": "by_restore"}.get(made_by)
        screen.line(catalogue.text(f"cli.state.{written or 'no_repairs'}"))
        return
    screen.line((catalogue.text("cli.state.repairs"), HEADING_STYLE))
    for one in repairs:
        screen.line((f"{field_words(one['field'], catalogue)} · {catalogue.word('repair', one['reason'])}", "magenta"))
        if not (one["before"] or one["after"]):  # the repair may be about a message that was erased
            screen.line("  ", (f"({catalogue.text('export.erased')})", DIM))
            continue
        screen.line("  - ", one["before"] or (catalogue.text("cli.state.added"), DIM))
        if one["after"] != one["before"]:
            screen.line("  + ", one["after"] or (catalogue.text("cli.state.gone"), DIM))


def show_difference(screen: Screen, found: StateDifference) -> None:
    """Print what is new, gone and changed."""
    screen.line((screen.catalogue.text("cli.show.difference", a=str(found.a), b=str(found.b)), HEADING_STYLE))
    if not (found.added or found.removed or found.changed):
        screen.line(screen.catalogue.text("cli.show.unchanged"))
    for entry in found.added:
        screen.line(("+ ", "green"), (f"{field_words(entry['field'], screen.catalogue)}: ", DIM), str(entry["text"]))
    for entry in found.removed:
        screen.line(("- ", "red"), (f"{field_words(entry['field'], screen.catalogue)}: ", DIM), str(entry["text"]))
    for entry in found.changed:
        screen.line(
            ("~ ", "yellow"),
            (f"{field_words(entry['field'], screen.catalogue)}: ", DIM),
            f"{entry['before']} → {entry['after']}",
        )


def show_segment(screen: Screen, segment: Segment) -> None:
    """Print a segment at one level: its text, or the originals."""
    place = ranges_of([segment.from_seq, segment.to_seq]) if segment.from_seq and segment.to_seq else ""
    catalogue = screen.catalogue
    where = f" · {catalogue.text('cli.messages', seqs=f'{segment.from_seq}–{segment.to_seq}')}" if place else ""
    screen.line(
        (segment.topic or segment.segment_id, HEADING_STYLE),
        (f" · {segment.segment_id} · {_level_in_language(segment.level, catalogue)}{where}", DIM),
    )
    if segment.content:
        screen.line(segment.content)
    for message in segment.messages:
        content = own_content(message.role, message.content, message.parts)
        screen.line((f"{message.seq} {role_words(message.role, catalogue)}", DIM), "  ", content)
        for part in message.parts:
            if part.get("type") != "text":
                screen.line("   ", (part_words(part, catalogue), DIM))
    for marker in segment.expansion_markers:
        screen.line((catalogue.text("cli.expand", marker=marker.text), DIM))
    if not (segment.content or segment.messages or segment.expansion_markers):
        screen.line((catalogue.text("cli.nothing"), DIM))


def show_compaction(screen: Screen, row: Compaction) -> None:
    """Print what a compaction did, or would do."""
    screen.line((compaction_words(row, screen.catalogue), "green" if row.status == "applied" else "yellow"))
    if row.status == "applied" and row.summary:
        screen.line()
        screen.line(row.summary)


def compaction_words(row: Compaction, catalogue: Catalogue) -> str:
    """What a compaction did, or would do, in one line."""
    status, reason = (
        word_in_language("status", row.status, catalogue),
        word_in_language("reason", row.reason or "", catalogue),
    )
    if not row.messages_covered:
        why = reason or catalogue.text("cli.compaction.no_reason")
        return catalogue.text("cli.compaction.nothing", status=status, reason=why)
    seqs = f" ({row.from_seq}–{row.to_seq})" if row.from_seq is not None else ""
    key = "planned" if row.status == "planned" else "folded"
    phrases = [
        catalogue.text(f"cli.compaction.{key}", status=status, count=row.messages_covered, seqs=seqs),
        catalogue.text("cli.compaction.change", before=row.tokens_before or 0, after=row.tokens_after or 0),
    ]
    if row.model:
        phrases.append(catalogue.text("cli.compaction.by", model=row.model))
    if row.duration_ms is not None:
        phrases.append(catalogue.text("cli.compaction.took", seconds=catalogue.number(row.duration_ms / 1000, 1)))
    return ", ".join([*phrases, reason] if reason else phrases)


def show_stats(screen: Screen, stats: Stats) -> None:
    """Print the figures that are not empty, with the service's labels for them."""
    values = stats.model_dump()
    summary = [str(sentence) for sentence in values.get("summary", ())]
    for sentence in summary:
        screen.line(sentence)
    labels: Mapping[str, str] = values.get("labels", {})
    rows = [(label, value) for path, label in labels.items() if (value := _figure(values, path, screen.catalogue))]
    if rows:
        if summary:
            screen.line()
        screen.table([screen.catalogue.text(f"cli.columns.{one}") for one in ("figure", "value")], rows)


def show_list(screen: Screen, conversations: Sequence[ConversationSummary]) -> None:
    """Print one line for each conversation."""
    catalogue = screen.catalogue
    if not conversations:
        screen.line(catalogue.text("cli.list.empty"))
        return
    rows = [
        (
            str(one.id),
            one.title or "–",
            catalogue.number(one.message_count),
            f"{int(one.context.utilization * 100)} %",
            str(one.state_version or "–"),
            one.preset,
            f"{one.last_message_at or one.created_at:%Y-%m-%d %H:%M}",
        )
        for one in conversations
    ]
    columns = ("id", "title", "messages", "context", "state", "preset", "last")
    spare = [columns.index(one) for one in ("state", "preset", "context", "messages", "last")]
    names = [catalogue.text(f"cli.list.{one}") for one in columns]
    # An id that is split over two lines cannot be copied.
    screen.table(names, rows, shrinks=columns.index("title"), spare=spare)


def show_continuity(screen: Screen, found: Sequence[CompactionContinuity]) -> None:
    """Print the score of each compaction, the newest first."""
    catalogue = screen.catalogue
    if not found:
        screen.line(catalogue.text("cli.continuity.nothing"))
        return
    rows = [
        (
            f"{one.from_seq}–{one.to_seq}",
            f"{one.continuity.after} / {one.continuity.before}",
            *(
                _formatted_share(value, catalogue)
                for value in (one.continuity.recall, one.continuity.contradiction, one.continuity.tone)
            ),
        )
        for one in found
    ]
    columns = ("messages", "answered", "recall", "contradiction", "tone")
    screen.table([catalogue.text(f"cli.columns.{name}") for name in columns], rows)


def _formatted_share(value: float | None, catalogue: Catalogue) -> str:
    return "–" if value is None else f"{value:.2f}".replace(".", catalogue.decimal)


def role_words(role: str, catalogue: Catalogue) -> str:
    """The role of a message in words."""
    return word_in_language("context.role", role, catalogue)


def warning_words(warning: str, catalogue: Catalogue) -> str:
    """A warning's code (``message_elided:7``) in words; an unknown code is shown unchanged."""
    code, _, what = warning.partition(":")
    key, reason = f"warning.{code}", f"reason.{what}"
    if not catalogue.has(key):
        return warning
    return catalogue.text(key, what=catalogue.text(reason) if catalogue.has(reason) else what)


def field_words(name: str, catalogue: Catalogue) -> str:
    """The name of a state's field in words."""
    return word_in_language("state", name, catalogue)


def _level_in_language(name: str, catalogue: Catalogue) -> str:
    level = LEVEL_BY_NAME.get(cast("LevelName", name))
    return name if level is None or catalogue.language == FALLBACK else catalogue.word("level", level)


def word_in_language(section: str, word: str, catalogue: Catalogue) -> str:
    """A word of ours (``background``) in the reader's language; in English it stays as programs know it."""
    return word if catalogue.language == FALLBACK or not word else catalogue.word(section, word)


def ranges_of(seqs: Sequence[int]) -> str:
    """Positions as ranges: ``1, 4–9``."""
    ranges = []
    for _, run in groupby(enumerate(sorted(set(seqs))), key=lambda pair: pair[1] - pair[0]):
        found = [seq for _, seq in run]
        ranges.append(str(found[0]) if len(found) == 1 else f"{found[0]}–{found[-1]}")
    return ", ".join(ranges)


def _has_count(one: Mapping[str, Any]) -> bool:
    return bool(one.get("count") or one.get("prompt_version"))


def _count_line(one: Mapping[str, Any], catalogue: Catalogue) -> str:
    if "prompt_version" not in one:
        return f"{one['label']} {one['count']}"
    counts = {
        name: catalogue.number(one.get(name, 0)) for name in ("attempts", "refused", "asked_again", "repairs", "doubts")
    }
    return catalogue.text("cli.show.prompt", version=str(one["prompt_version"]), **counts)


def _figure(values: Any, path: str, catalogue: Catalogue) -> str:
    """The value at a path; empty if it is missing, zero, or not a figure."""
    for name in path.split("."):
        if not isinstance(values, Mapping):
            return ""
        values = values.get(name)
    if isinstance(values, list):
        return ", ".join(_count_line(one, catalogue) for one in values if isinstance(one, Mapping) and _has_count(one))
    if isinstance(values, bool) or not isinstance(values, int | float) or not values:
        return ""
    if isinstance(values, int):
        return catalogue.number(values)
    return (
        f"{Decimal(f'{values:.4g}'):f}".replace(".", catalogue.decimal)
        if abs(values) < 1
        else catalogue.number(values, 1)
    )
