"""``throughline doctor``: finds states that are damaged or not summaries, and makes them again from the messages.

The gate refuses error texts, excuses, and empty or cut-off summaries. But a state that was imported, or written by an
earlier version, was never checked by it. A repair goes back to before the first compaction and folds the same messages
again; the messages themselves are never touched. ``--verify`` also finds damage by checks of earlier versions. It is
repaired by folding again from the newest sound version, or by code if no language model summarizes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Annotated, Any, Final, Literal

import typer

from app.cli.complaints import ComplaintError, words_of
from app.cli.connecting import AsJson, Key, Url, connected_client, conversation_id
from app.cli.inspect import newest_state
from app.cli.screen import Screen, one_line
from app.cli.showing import field_words
from app.cli.terminal_language import terminal_catalogue, text_of
from app.client import ApiError, ConflictError, Examination, NotFoundError, StateVersion, Throughline, ThroughlineError
from app.core.model.schemas import schema_named
from app.core.validation.health import Finding, findings
from app.usecases.compaction.commands import TypedCommands

EXIT_FOUND: Final = 1
"""The exit code if a problem was found and remains."""
BEFORE_FIRST_COMPACTION: Final = 0
"""The version that stands for the time before the first compaction."""
PATIENCE_SECONDS: Final = 600.0
"""How many seconds a repair waits for other compactions of the conversation."""
_VERSIONS_LOOKED_BACK: Final = 10  # versions
_ENDING_CHARACTERS: Final = 40  # characters
SHOWN_CHARACTERS: Final = 60  # characters of a damaged text

Outcome = Literal["found", "repaired", "mended", "still_sick", "put_back"]
_HEALED: Final = frozenset[Outcome]({"repaired", "mended"})


@dataclass(frozen=True, slots=True)
class SickConversation:
    """A conversation with a damaged state, or with a state that is not a summary."""

    conversation_id: str
    title: str
    version: StateVersion
    found: tuple[Finding, ...]
    is_known: bool = True
    """Whether the state's schema is known."""
    damage: Examination | None = None
    """The damage by checks of earlier versions; it is part of ``found``, too."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of one repair."""

    outcome: Outcome
    version: int
    """The version of the state that is served now."""
    words: str = ""


def doctor(
    conversations: Annotated[list[str] | None, typer.Argument(help="Ids, or `last`.", metavar="[ID]...")] = None,
    url: Url = None,
    key: Key = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="Look at every conversation.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Make sick states anew from the originals.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Look for what earlier checks damaged, too.")] = False,
    mend: Annotated[
        bool, typer.Option("--mend", help="Fold damaged states again from the newest sound version; implies --verify.")
    ] = False,
    by_code: Annotated[
        bool, typer.Option("--by-code", help="Mend without a model: set aside what stands in an item's place.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look for error texts, missing, empty and cut-off summaries in states; exit 1 when one is found and stays."""
    with connected_client(url, key) as client:
        if bool(conversations) == all_:
            raise ComplaintError(text_of("complaint.which"))
        ids = [conversation_id(client, one) for one in conversations or ()]
        screen = Screen(terminal_catalogue())
        if not as_json and client.readiness().get("row_security") == "off":
            screen.line((text_of("doctor.no_row_security"), "yellow"))
        report = _Report(screen, as_json=as_json)
        for id_ in ids or [str(one.id) for one in client.conversations(page_size=100) if one.state_version]:
            with suppress(NotFoundError) if all_ else nullcontext():  # it may have been deleted meanwhile
                sick = with_damage(client, id_, examine(client, id_)) if verify or mend else examine(client, id_)
                if sick is not None:
                    report.add(sick, _requested_repair(client, sick, repair=repair, mend=mend, by_code=by_code))
                report.looked += 1
        report.end(asked_to_repair=repair or mend)
    if report.has_sick:
        raise typer.Exit(EXIT_FOUND)


def examine(client: Throughline, id_: str) -> SickConversation | None:
    """What is wrong with the state that is served now; ``None`` if nothing is wrong or there is no state."""
    version = newest_state(client, id_)
    if version is None or not version.boundary_seq:
        if version is None:
            client.conversation(id_)  # raises if the conversation does not exist; one without a state is healthy
        return None
    try:
        schema = schema_named(version.state_schema)
    except KeyError:
        return SickConversation(id_, _title(client, id_), version, (), is_known=False)
    contents = cache(lambda: list(_spoken_contents(client, id_, version.boundary_seq)))
    before = _different_state_before(client, id_, version)
    given_up = {one["field"] for one in version.provenance if one["pruned"]}
    stated_values = {one["text"] for one in version.provenance if one["from_seqs"]}
    found = findings(
        schema,
        version.state,
        covered_messages=version.boundary_seq,
        before=before,
        fields_given_up=given_up,
        sourced_texts=stated_values,
    )
    if any(one.kind == "empty" for one in found):
        found = findings(schema, version.state, covered_messages=len(contents()))
    if any(one.kind == "cut_off" for one in found):
        found = [one for one in found if one.kind != "cut_off" or not ends_as_a_line(one.text, contents())]
    return SickConversation(id_, _title(client, id_), version, tuple(found)) if found else None


def ends_as_a_line(text: str, contents: Iterable[str]) -> bool:
    """Whether a line of the messages ends as the text does, so that the text, a heading perhaps, is not cut off."""
    ending = " ".join(text.split())[-_ENDING_CHARACTERS:]
    return any(" ".join(line.split()).endswith(ending) for one in contents for line in one.splitlines())


def with_damage(client: Throughline, id_: str, sick: SickConversation | None) -> SickConversation | None:
    """``sick`` with the damage by checks of earlier versions added; ``None`` if nothing is wrong."""
    version = sick.version if sick else newest_state(client, id_)
    if version is None or not version.boundary_seq or not (sick is None or sick.is_known):
        return sick
    damage = client.examine(id_)
    if not damage.damages:
        return sick
    sick = sick or SickConversation(id_, _title(client, id_), version, ())
    found = (Finding(kind=one["kind"], field=one["field"], text=one["text"]) for one in damage.damages)
    return replace(sick, found=(*sick.found, *found), damage=damage)


def _requested_repair(
    client: Throughline, sick: SickConversation, *, repair: bool, mend: bool, by_code: bool
) -> Repair | None:
    is_ill = sick.damage is None or len(sick.found) > len(sick.damage.damages)
    if repair and sick.is_known and is_ill:
        return remake(client, sick)
    if not mend or sick.damage is None:
        return None
    if sick.damage.by_model and not by_code:
        return remake(client, sick, back_to=sick.damage.sound_version or BEFORE_FIRST_COMPACTION)
    return mend_by_code(client, sick)


def mend_by_code(client: Throughline, sick: SickConversation) -> Repair:
    """Let the service repair by code; items that only a model could write again stay as they are."""
    try:
        done = client.examine(sick.conversation_id, mend=True, if_match=sick.version.version)
    except ThroughlineError as error:
        return Repair("put_back", sick.version.version, text_of("doctor.not_begun", why=words_of(error)))
    still_sick = with_damage(client, sick.conversation_id, examine(client, sick.conversation_id))
    if still_sick is not None:
        return Repair("still_sick", done.state_version_now, "; ".join(_sentence_of(one) for one in still_sick.found))
    return Repair("mended", done.state_version_now, text_of("doctor.by_code", count=len(done.repairs)))


def remake(client: Throughline, sick: SickConversation, *, back_to: int = BEFORE_FIRST_COMPACTION) -> Repair:
    """Make the state again from the originals; if that fails, the old state is put back.

    ``back_to`` is the version from which the work begins.

    Raises:
        ThroughlineError: The old state could not be put back. The conversation then has no state, but loses no message.
    """
    id_, old = sick.conversation_id, sick.version
    boundary = client.conversation(id_).compressed_at_message_id
    try:
        client.restore(id_, back_to, if_match=old.version)
    except ThroughlineError as error:
        return Repair("put_back", old.version, text_of("doctor.not_begun", why=words_of(error)))
    try:
        reason = _fold_again(client, id_, old, str(boundary))
    except ThroughlineError as error:
        reason = words_of(error)
    except BaseException:
        put_back(client, sick)
        raise
    if reason is not None:
        return Repair("put_back", put_back(client, sick), reason)
    return _result_of_remake(client, id_, looks_for_damage=sick.damage is not None)


def put_back(client: Throughline, sick: SickConversation) -> int:
    """Restore the old version, so that nothing is worse than before; return its new number."""
    return client.restore(sick.conversation_id, sick.version.version).state_version


def _fold_again(client: Throughline, id_: str, old: StateVersion, boundary: str) -> str | None:
    """Compact up to the old boundary, in as many steps as needed.

    Returns the reason if it failed, otherwise ``None``.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    reached = 0
    while True:
        before = reached
        refused: ApiError | None = None
        row = None
        try:
            row = client.compact(id_, up_to_message_id=boundary)
        except ConflictError as error:
            if time.monotonic() > deadline:
                raise
            time.sleep(min(error.retry_after or 1.0, 5.0))
            continue
        except ApiError as error:
            refused = error
        newest = newest_state(client, id_)
        reached = newest.boundary_seq if newest else 0
        if reached >= old.boundary_seq or (row is not None and row.reason == "nothing_to_compact"):
            return None
        if reached <= before:  # the time of a request may end before a long conversation is done; the next one goes on
            if refused is not None:
                raise refused
            if row is None or row.status == "applied":
                return None
            return text_of("doctor.not_folded", reason=str(row.reason))


def _result_of_remake(client: Throughline, id_: str, *, looks_for_damage: bool) -> Repair:
    """Examine a state that was made again, and say whether it is sound."""
    still_sick, newest = examine(client, id_), newest_state(client, id_)
    if looks_for_damage:
        still_sick = with_damage(client, id_, still_sick)
    number = newest.version if newest else 0
    if still_sick is not None:
        return Repair("still_sick", number, "; ".join(_sentence_of(one) for one in still_sick.found))
    if newest is None or not newest.boundary_seq:
        return Repair("repaired", number, text_of("doctor.too_short"))
    return Repair("repaired", number, text_of("doctor.anew", last=str(newest.boundary_seq)))


class _Report:
    """The report about damaged conversations, printed as they are found."""

    def __init__(self, screen: Screen, *, as_json: bool) -> None:
        self._screen = screen
        self._as_json = as_json
        self._rows: list[tuple[SickConversation, Repair | None]] = []
        self.looked = 0

    @property
    def has_sick(self) -> bool:
        """Whether a conversation is still damaged."""
        return any(repair is None or repair.outcome not in _HEALED for _, repair in self._rows)

    def add(self, sick: SickConversation, repair: Repair | None) -> None:
        """Add a conversation whose state is damaged, or was."""
        self._rows.append((sick, repair))

    def end(self, *, asked_to_repair: bool) -> None:
        """Print the table, and what to do."""
        if self._as_json:
            self._screen.json({"looked_at": self.looked, "found": [_as_value(*row) for row in self._rows]})
            return
        if not self._rows:
            self._screen.line((f"{text_of('doctor.healthy')} ", "green"), text_of("doctor.looked", count=self.looked))
            return
        columns = ("conversation", "title", "version", "found", "in", "text")
        self._screen.table(
            [text_of(f"doctor.columns.{one}") for one in columns],
            [line for sick, _ in self._rows for line in _finding_rows(sick)],
        )
        for sick, repair in self._rows:
            if repair is not None:
                self._print_repair(sick, repair)
        if asked_to_repair and self.has_sick:
            is_damaged = all(sick.damage for sick, _ in self._rows)
            self._screen.line(text_of("doctor.advice_mend" if is_damaged else "doctor.advice"))
        elif not asked_to_repair:
            self._screen.line(text_of("doctor.sick", sick=len(self._rows), looked=self.looked))
            self._print_damage()

    def _print_damage(self) -> None:
        damaged = [sick.damage for sick, _ in self._rows if sick.damage]
        if damaged:
            again = [one for one in damaged if one.by_model]
            messages, tokens = sum(one.messages for one in again), sum(one.tokens for one in again)
            self._screen.line(text_of("doctor.damaged", count=len(damaged), messages=messages, tokens=tokens))

    def _print_repair(self, sick: SickConversation, repair: Repair) -> None:
        colour = "green" if repair.outcome in _HEALED else "red"
        versions = text_of("doctor.versions", now=str(repair.version), before=str(sick.version.version))
        words = f"{sick.conversation_id}: {repair.words} {versions}"
        self._screen.line((f"{text_of(f'doctor.{repair.outcome}')} ", colour), words)


def _finding_rows(sick: SickConversation) -> Iterator[tuple[str, ...]]:
    about = (sick.conversation_id, sick.title or "–", str(sick.version.version))
    if not sick.is_known:
        yield (*about, text_of("doctor.unknown_schema"), sick.version.state_schema, "")
    for one in sick.found:
        place = field_words(one.field, terminal_catalogue()) if one.field else text_of("doctor.whole")
        yield (*about, text_of(f"doctor.{one.kind}"), place, _shortened_line(one.text))


def _as_value(sick: SickConversation, repair: Repair | None) -> dict[str, Any]:
    damage = sick.damage
    return {
        "conversation_id": sick.conversation_id,
        "title": sick.title,
        "state_version": sick.version.version,
        "findings": [{"sickness": one.kind, "field": one.field, "text": one.text} for one in sick.found]
        or [{"sickness": "unknown_schema", "field": None, "text": sick.version.state_schema}],
        "outcome": repair.outcome if repair else "found",
        "sound_version": damage.sound_version if damage else None,
        "messages": damage.messages if damage else 0,
        "tokens": damage.tokens if damage else 0,
        "state_version_now": repair.version if repair else sick.version.version,
        "detail": repair.words if repair else "",
    }


def _sentence_of(finding: Finding) -> str:
    what = text_of(f"doctor.{finding.kind}")
    if finding.field:
        what = text_of("doctor.in_field", what=what, field=field_words(finding.field, terminal_catalogue()))
    return what + (f": {_shortened_line(finding.text)}" if finding.text else "")


def _shortened_line(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def _title(client: Throughline, id_: str) -> str:
    return client.conversation(id_).title or ""


def _spoken_contents(client: Throughline, id_: str, through_seq: int) -> Iterator[str]:
    commands = TypedCommands()
    for message in client.messages(id_, order="asc", page_size=100):
        if message.seq > through_seq:
            break
        if commands.has(message.role, message.event_type, message.content, message.status):
            continue
        if message.status not in {"erased", "superseded"}:
            yield message.content


def _different_state_before(client: Throughline, id_: str, version: StateVersion) -> Mapping[str, Any] | None:
    older = (one for one in islice(client.states(id_, order="desc"), 1, _VERSIONS_LOOKED_BACK) if one.boundary_seq)
    fitting = (
        one.state
        for one in older
        if one.state_schema == version.state_schema
        and one.boundary_seq <= version.boundary_seq
        and one.state != version.state
    )
    return next(fitting, None)
