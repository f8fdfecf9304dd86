"""The rounds of the corpus: which messages a compaction would fold, and the prompt that a writer answers.

``python -m bench.trust.rounds plan`` lists every talk. ``prompt FOLDER CASE`` prints the prompt of a case; the earlier
answers of the same talk and preset must be in ``FOLDER`` as ``<preset>-<round>.json``. ``read FOLDER TALK`` says for
each answer there whether it can be parsed, and ``collect FOLDER TALK`` writes the answers to the corpus.

No case depends on what a check did to another: the previous state is made of the writer's earlier answers, merged by
simple rules (``merged``), and the anchors are those that were on record when the prompt was made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from app.core.model.anchors import Anchor
from app.core.model.conversation import Message
from app.core.model.model_io import SummaryRequest
from app.core.model.redaction import redact_message
from app.core.model.schemas import schema_named
from app.core.model.segments import CutSegment
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema
from app.core.state.schema_change import requested_state_tokens
from app.core.summarizer.candidate import CandidateError, parse_candidate
from app.core.summarizer.prompts import SUMMARY_VERSION, render_summary
from app.core.text.token_counts import weigh
from app.usecases.compaction.chunk import DESCRIBED, MINIMUM_OUTPUT
from app.usecases.compaction.segmenting import cut_span
from bench.replay import BEGINNING, CONVERSATION, Replay

HERE: Final = Path(__file__).parent
CONVERSATIONS: Final = HERE / "conversations"
ANSWERS: Final = HERE / "answers"
SEALED: Final = HERE / "sealed"
ROUNDS: Final = 5
WINDOW: Final = 16_000
PRESETS: Final = (("semantic", "handoff", "turn_end"), ("hierarchical", "research", "sessions"))
"""Talks have these sets of presets in turn; all three presets of a set answer the same chunks."""
_CHUNK_TOKENS: Final = 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One conversation of the corpus, with the data of its lies and questions."""

    id: str
    language: str
    kind: str
    messages: tuple[Message, ...]
    questions: tuple[Mapping[str, Any], ...]
    presets: tuple[str, ...]
    is_sealed: bool

    def rounds(self) -> list[tuple[int, int]]:
        """The first and last ``seq`` of each round; a round begins with a user's message."""
        count = len(self.messages)
        cuts = [0]
        for number in range(1, ROUNDS):
            cut = count * number // ROUNDS
            while cut < count and self.messages[cut].role != "user":
                cut += 1
            cuts.append(cut)
        cuts.append(count)
        return [(first + 1, last) for first, last in pairwise(cuts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One recorded answer, with everything that its prompt was made of."""

    talk: Talk
    preset: str
    round: int
    """The number of the round, from 1."""
    answer: str
    request: SummaryRequest
    prompt_version: str

    @property
    def id(self) -> str:
        """``talk/preset/round``."""
        return f"{self.talk.id}/{self.preset}/{self.round}"


@cache
def talks() -> tuple[Talk, ...]:
    """All conversations, sorted by name; every second one of a language is sealed."""
    seen: dict[str, int] = {}
    found = []
    for number, path in enumerate(sorted(CONVERSATIONS.glob("*.jsonl"))):
        data = json.loads(path.read_text("utf-8"))
        seen[data["language"]] = nth = seen.get(data["language"], -1) + 1
        found.append(
            Talk(
                id=data["id"],
                language=data["language"],
                kind=data["kind"],
                messages=tuple(message_of(seq, one) for seq, one in enumerate(data["messages"], start=1)),
                questions=tuple(data.get("questions", ())),
                presets=PRESETS[nth % 2],
                is_sealed=number % 2 == 1,
            )
        )
    return tuple(found)


def talk_named(name: str) -> Talk:
    """The conversation of that name; ``KeyError`` when there is none."""
    return {talk.id: talk for talk in talks()}[name]


def request_of(
    talk: Talk, preset: str, number: int, previous: Sequence[StateEntry], anchors: Sequence[Anchor]
) -> SummaryRequest:
    """The request that the service would make about that round under that preset."""
    replay = Replay.in_window(WINDOW, preset)
    first, last = talk.rounds()[number - 1]
    span = tuple(redact_message(message) for message in talk.messages[first - 1 : last])
    tokens = requested_state_tokens(replay.budgets, tuple(previous), carried=False)
    segments: tuple[CutSegment, ...] = ()
    if DESCRIBED.intersection(replay.policy.levels):
        segments = cut_span(span, replay.policy.segment_by, from_seq=first, to_seq=last)
    return SummaryRequest(
        schema=replay.schema,
        messages=span,
        previous=tuple(previous),
        anchors=tuple(anchors),
        anchor_room=replay.budgets.anchor_tokens,
        target_tokens=tokens,
        chunk_tokens=_CHUNK_TOKENS,
        max_output_tokens=MINIMUM_OUTPUT,
        locale=talk.language,
        segments=segments,
    )


def anchors_of(talk: Talk, preset: str, number: int) -> tuple[Anchor, ...]:
    """The active anchors up to the end of a round, as today's rules find them when messages are stored."""
    replay = Replay.in_window(WINDOW, preset)
    _, last = talk.rounds()[number - 1]
    for message in talk.messages[:last]:
        replay.say(message.role, message.content, message.parts, at=message.created_at)
    return replay._active(last)  # noqa: SLF001 - what the replay itself would serve


def merged(previous: Sequence[StateEntry], answer: str, schema: StateSchema, *, number: int) -> tuple[StateEntry, ...]:
    """The state after an answer, without checks: replaced and dropped entries go, new ones are added at the end."""
    candidate = parse_candidate(answer, schema)
    gone = {name for item in candidate.items for name in item.replaces} | {drop.entry for drop in candidate.dropped}
    kept = [entry for entry in previous if entry.role != "narrative" and entry.id not in gone]
    made = [*((item.field, item.text, item.from_seqs) for item in candidate.items)]
    made += [(field, text, ()) for field, text in candidate.narrative.items()]
    kept += [
        entry for entry in previous if entry.role == "narrative" and entry.field not in candidate.narrative
    ]  # a section that an answer leaves out stays
    numbers = 1 + max((int(entry.id[1:]) for entry in previous), default=0)
    for count, (field, text, seqs) in enumerate(made, start=numbers):
        role = schema.field(field).role
        kept.append(
            StateEntry(
                id=f"{ID_LETTERS[role]}{count}",
                field=field,
                role=role,
                text=text,
                from_seqs=tuple(seqs),
                since_version=number,
            )
        )
    order = [field.name for field in schema.fields]
    return tuple(sorted(kept, key=lambda entry: order.index(entry.field)))


def cases(*, sealed: bool = False) -> Iterator[Case]:
    """Every recorded answer of the open half, or of the sealed one."""
    for talk in talks():
        path = (SEALED if talk.is_sealed else ANSWERS) / f"{talk.id}.json"
        if talk.is_sealed == sealed and path.exists():
            yield from cases_of(talk, json.loads(path.read_text("utf-8")))


def cases_of(talk: Talk, recorded: Mapping[str, Any]) -> Iterator[Case]:
    """The cases of one talk's file."""
    for preset in talk.presets:
        previous: tuple[StateEntry, ...] = ()
        for number in range(1, ROUNDS + 1):
            one = recorded["answers"][f"{preset}-{number}"]
            request = request_of(talk, preset, number, previous, _anchors(one["anchors"]))
            if '"segments"' not in one["answer"]:  # asked for no description
                request = replace(request, segments=())
            yield Case(
                talk=talk,
                preset=preset,
                round=number,
                answer=one["answer"],
                request=request,
                prompt_version=recorded["prompt_version"],
            )
            previous = merged(previous, one["answer"], request.schema, number=number)


def message_of(seq: int, one: Mapping[str, Any]) -> Message:
    """A message from its form in a file."""
    weight = weigh(one["role"], one["content"], tuple(one.get("parts", ())))
    return Message(
        id=UUID(int=1_000_000 + seq),
        conversation_id=CONVERSATION,
        seq=seq,
        role=one["role"],
        content=one["content"],
        parts=tuple(one.get("parts", ())),
        token_count=weight.tokens,
        byte_length=weight.bytes,
        metadata=one.get("metadata", {}),
        created_at=datetime.fromisoformat(one["created_at"]),
    )


def _anchors(stored: Iterable[Mapping[str, Any]]) -> tuple[Anchor, ...]:
    return tuple(
        Anchor(
            type=one["type"],
            content=one["content"],
            seq=one["seq"],
            offset=one["offset"],
            importance=one["importance"],
            token_count=one["tokens"],
            proposed_by="rule",
            id=UUID(int=number),
            conversation_id=CONVERSATION,
            message_id=UUID(int=1_000_000 + one["seq"]),
            created_at=BEGINNING,
        )
        for number, one in enumerate(stored)
    )


def _as_stored(anchors: Iterable[Anchor]) -> list[dict[str, Any]]:
    return [
        {
            "type": one.type,
            "content": one.content,
            "seq": one.seq,
            "offset": one.offset,
            "importance": one.importance,
            "tokens": one.token_count,
        }
        for one in anchors
    ]


def _previous(preset: str, number: int, folder: Path) -> tuple[StateEntry, ...]:
    """The state before a round, from the answers in a folder."""
    schema = schema_named(Replay.in_window(WINDOW, preset).policy.state_schema)
    entries: tuple[StateEntry, ...] = ()
    for earlier in range(1, number):
        text = (folder / f"{preset}-{earlier}.json").read_text("utf-8")
        entries = merged(entries, text, schema, number=earlier)
    return entries


def _prompt(folder: Path, case: str) -> str:
    name, preset, number = case.split("/")
    talk, nth = talk_named(name), int(number)
    request = request_of(talk, preset, nth, _previous(preset, nth, folder), anchors_of(talk, preset, nth))
    prompt = render_summary(request)
    shape = json.dumps(prompt.json_schema, ensure_ascii=False)
    return f"# SYSTEM\n\n{prompt.system}\n\n# USER\n\n{prompt.user}\n\n# JSON SCHEMA OF THE ANSWER\n\n{shape}\n"


def _read(folder: Path, talk: Talk) -> bool:
    """Print for each answer whether it can be parsed; return whether all can."""
    good = True
    for preset in talk.presets:
        schema = schema_named(Replay.in_window(WINDOW, preset).policy.state_schema)
        for number in range(1, ROUNDS + 1):
            path = folder / f"{preset}-{number}.json"
            try:
                text = path.read_text("utf-8")
                json.loads(text)
                candidate = parse_candidate(text, schema)
            except (OSError, ValueError, CandidateError) as error:
                good = False
                print(f"{path.name}: {error!r}")
                continue
            print(f"{path.name}: {len(candidate.items)} items, {len(candidate.narrative)} texts")
    return good


def _collect(folder: Path, talk: Talk) -> Path:
    answers = {
        f"{preset}-{number}": {
            "anchors": _as_stored(anchors_of(talk, preset, number)),
            "answer": (folder / f"{preset}-{number}.json").read_text("utf-8").strip(),
        }
        for preset in talk.presets
        for number in range(1, ROUNDS + 1)
    }
    lies = [json.loads(line) for line in (folder / "lies.jsonl").read_text("utf-8").splitlines() if line.strip()]
    target = (SEALED if talk.is_sealed else ANSWERS) / f"{talk.id}.json"
    target.parent.mkdir(exist_ok=True)
    data = {"talk": talk.id, "prompt_version": SUMMARY_VERSION, "answers": answers, "lies": lies}
    target.write_text(json.dumps(data, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    return target


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    command, *rest = arguments or ["plan"]
    if command == "plan":
        for talk in talks():
            print(f"{talk.id}: {talk.language}, {len(talk.messages)} messages, {talk.rounds()}, {talk.presets}")
    elif command == "prompt":
        print(_prompt(Path(rest[0]), rest[1]))
    elif command == "read":
        return 0 if _read(Path(rest[0]), talk_named(rest[1])) else 1
    elif command == "collect":
        print(_collect(Path(rest[0]), talk_named(rest[1])))
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
