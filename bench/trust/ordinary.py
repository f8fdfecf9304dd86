"""``python -m bench.trust.ordinary``: what the exact checks do to honest answers about ordinary talks.

The talks are in English, Russian, Chinese, German, Spanish and French, as people write them, and in eight further
languages, as they are dictated. The answers are by writers who had not seen the checks, to the very prompts of the
service. Nothing in them is a lie: each failing statement is an honest one that the writer is asked about again, and
that is cut or removed if the writer repeats it. Every second one of thirty talks was worked on; the others (``held``)
are only counted, as are eight that were written later (``later``). Fifteen more, about code, lessons, support and
friends, are divided in the same way (``work-open``, ``work-held``). The sets ``everyday``, ``languages``, ``further``
and ``rounds`` (ten talks in five rounds) were worked on, ``further-held`` was only counted. The narratives of
``restated`` and ``restated-held`` state nearly every value in another form than it was said. ``fresh`` (16 talks),
``varied`` (18, both most in three rounds), ``summed`` (12 in two rounds, by a writer who was to calculate) and
``sixteenth`` (20, most in three rounds, in nine languages) were counted first, and read then, as were ``freely`` (12 in
two rounds, full of numbers) and ``kinds`` (15 in two rounds: friends, lessons, support with tools, code). ``formulas``
and ``formulas-held`` are six talks each, full of calculations, in two rounds. They have planted lies, which are counted
in a table of their own. ``--show`` prints the failing statements of the open talks.

The other columns are a control: one number, amount, date or time of each statement is replaced by a random one. They
count how many hints to the writer of such a statement name the original value. The last two columns say how many of the
true values of failing statements are left after cutting, for honest statements and for those with a random value.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from app.core.model.anchors import FoundAnchor
from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.conversation import Message
from app.core.model.repairs import Repair
from app.core.model.schemas import schema_named
from app.core.model.state import StateEntry, StateSchema
from app.core.summarizer.candidate import attribute_sources, parse_candidate
from app.core.text.sentences import sentences
from app.core.text.values import Value, ValueIndex, values
from app.core.validation.exact_checks import SEGMENTS_FIELD, Failure, examine_candidate, without_failures
from app.core.validation.source_texts import SourceTexts
from bench.report import print_table, write_json
from bench.trust.values import CHANGED, message, random_value

FOLDER: Final = Path(__file__).parent / "ordinary"
SETS: Final = (
    *("open", "held", "later", "work-open", "work-held"),
    *("everyday", "languages", "further", "further-held", "rounds"),
    *("restated", "restated-held", "fresh", "varied", "summed", "sixteenth", "freely", "kinds"),
    *("formulas", "formulas-held"),
)
KINDS: Final = ("items", "narrative sentences", "digests")
Counts = Counter[tuple[str, str]]
"""Counts by kind of statement, and ``all``, ``failing`` or (for items) ``gone``. For the control there are ``changed``
and ``changed, failing``, for hints ``hint, right`` and ``hint, wrong``, for cuts ``true values`` and ``true values,
left``, which have ``changed, `` before them for the control."""


@dataclass(frozen=True, slots=True)
class Lie:
    """One edit of an item that makes it false: ``before`` becomes ``after``."""

    kind: str
    item: CandidateItem
    before: str
    after: str

    @property
    def told(self) -> CandidateItem:
        """The item with the lie."""
        return replace(self.item, text=self.item.text.replace(self.before, self.after, 1))


@dataclass(frozen=True)
class Answer:
    """One honest answer, with everything that its prompt showed."""

    talk: str
    language: str
    candidate: Candidate
    messages: tuple[Message, ...]
    previous: tuple[StateEntry, ...]
    anchors: tuple[FoundAnchor, ...]
    system_prompt: str
    schema: StateSchema
    lies: tuple[Lie, ...] = ()

    @cached_property
    def shown(self) -> SourceTexts:
        """The texts in which the checks look values up."""
        return SourceTexts(self.messages, self.previous, self.anchors, self.system_prompt)

    def statements(self) -> Iterator[tuple[str, CandidateItem]]:
        """Each statement with its kind; a sentence of a narrative names no sources."""
        yield from (("items", item) for item in self.candidate.items)
        texts = (text for text in self.candidate.narrative.values())
        yield from (("narrative sentences", _sentence(one)) for text in texts for one in sentences(text))
        yield from (("digests", _sentence(f"{one.topic}. {one.brief}")) for one in self.candidate.digests)


def answers(name: str) -> Iterator[Answer]:
    """The answers about the talks of one set."""
    with (FOLDER / f"{name}.jsonl").open(encoding="utf-8") as lines:
        yield from map(_answer, map(json.loads, lines))


def counted(given: Iterable[Answer], seed: int = 7) -> Counts:
    """How many statements there are, and how many fail: as they are, and with one value changed."""
    found = Counts()
    for number, answer in enumerate(given):
        dice = random.Random(f"{seed} {number}")
        for kind, _ in answer.statements():
            found[kind, "all"] += 1
        examined = examine_candidate(answer.candidate, answer.shown)  # as a whole: narratives may use values of items
        for kind in map(_kind, _one_each(examined.failures)):
            found[kind, "failing"] += 1
        left = without_failures(examined, answer.schema, answer.previous)
        found["items", "gone"] += len(answer.candidate.items) - len(left.candidate.items)
        _count_left(found, left.repairs)
        for kind, item in answer.statements():
            changed, value = changed_value(item.text, answer.shown, dice)
            if value:
                found[kind, "changed"] += 1
                one = CandidateItem(field=item.field, text=changed, from_seqs=item.from_seqs)
                examined = examine_candidate(Candidate(items=(one,), narrative={}), answer.shown)
                found[kind, "changed, failing"] += bool(examined.failures)
                _count_left(found, without_failures(examined, answer.schema).repairs, wrong=1)
                for hint in (one.hints for one in examined.failures if one.hints):
                    found[kind, "hint, right" if _names(hint, value) else "hint, wrong"] += 1
    return found


def lies_counted(given: Iterable[Answer]) -> Counts:
    """How many planted lies there are, and how many fail though their honest item does not, by kind."""
    found = Counts()
    for shown, lie in ((answer.shown, lie) for answer in given for lie in answer.lies):
        found[lie.kind, "all"] += 1
        found[lie.kind, "failing"] += _fails(lie.told, shown) and not _fails(lie.item, shown)
    return found


def _fails(item: CandidateItem, shown: SourceTexts) -> bool:
    return bool(examine_candidate(Candidate(items=(item,), narrative={}), shown).failures)


def _count_left(found: Counts, repairs: Iterable[Repair], wrong: int = 0) -> None:
    """Count the true values in statements that were cut (each has ``wrong`` false ones), and those in what is left."""
    what = "changed, true values" if wrong else "true values"
    for repair in repairs:
        if repair.reason == "novel_value" and repair.field != SEGMENTS_FIELD:
            found["all", what] += len(values(repair.before)) - wrong
            found["all", f"{what}, left"] += len(values(repair.after or ""))


def _one_each(failing: Iterable[Failure]) -> Iterator[Failure]:
    """The failures, but only one for a digest with several failing sentences."""
    seen = set()
    for failure in failing:
        key = failure.key if failure.is_item or failure.index is None else (failure.field, failure.index, "")
        if key not in seen:
            seen.add(key)
            yield failure


def _kind(failure: Failure) -> str:
    if failure.is_item:
        return "items"
    return "narrative sentences" if failure.index is None else "digests"


def _names(hint: str, value: Value) -> bool:
    """Whether the hint that the writer would get when asked again names this value."""
    given = ValueIndex()
    for source, one in enumerate(hint.split("; ")):
        given.add(source, one.partition(": ")[2])
    return bool(given.sources(value))


def changed_value(text: str, shown: SourceTexts, dice: random.Random) -> tuple[str, Value | None]:
    """The statement with a random value for one of its own, and the value replaced; ``None`` if the new one occurs."""
    found = [value for value in values(text) if value.kind in CHANGED]
    if not found:
        return "", None
    value = dice.choice(found)
    other = random_value(value, dice)
    changed = text[: value.start] + other + text[value.end :]
    made = next((one for one in values(changed) if one.start == value.start), None)
    occurs = other == value.text or made is None or shown.sources_of(made)
    return changed, None if occurs else value


def _sentence(text: str) -> CandidateItem:
    return CandidateItem(field="facts", text=text, from_seqs=())


def _answer(row: Mapping[str, Any]) -> Answer:
    messages = tuple(message(*one) for one in row["messages"])
    schema = schema_named(row["schema"])
    previous = tuple(_entry(**one) for one in row["previous"])
    candidate = attribute_sources(parse_candidate(row["answer"], schema), messages, previous)
    return Answer(
        talk=row["talk"],
        language=row["language"],
        candidate=candidate,
        messages=messages,
        previous=previous,
        anchors=tuple(_anchor(*one) for one in row["anchors"]),
        system_prompt=row["system_prompt"],
        schema=schema,
        lies=tuple(_lie(candidate, **one) for one in row.get("lies", ())),
    )


def _lie(candidate: Candidate, *, field: str, item: int, **edit: str) -> Lie:
    return Lie(item=[one for one in candidate.items if one.field == field][item], **edit)


def _entry(**fields: Any) -> StateEntry:
    lists: dict[str, Any] = {name: tuple(fields.pop(name)) for name in ("from_seqs", "origins", "superseded")}
    return StateEntry(**fields, **lists, since_version=1)


def _anchor(kind: Any, seq: int, speaker: Any, content: str, *, pasted: bool = False) -> FoundAnchor:
    return FoundAnchor(
        type=kind, content=content, seq=seq, offset=0, importance=0.5, token_count=1, speaker=speaker, pasted=pasted
    )


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.trust.ordinary", description=__doc__)
    parser.add_argument("--show", action="store_true", help="print what fails of the open talks")
    asked = parser.parse_args()
    given = {name: list(answers(name)) for name in SETS}
    rows, figures = [], {}
    for name, answers_of_set in given.items():
        for language in [*sorted({one.language for one in answers_of_set}), ""]:
            some = [one for one in answers_of_set if language in {"", one.language}]
            found = counted(some)
            figures[f"{name} {language}".strip()] = {" ".join(key): number for key, number in found.items()}
            control = [sum(found[kind, which] for kind in KINDS) for which in ("changed, failing", "changed")]
            right, wrong = (sum(found[kind, f"hint, {which}"] for kind in KINDS) for which in ("right", "wrong"))
            shares = [_share(found[kind, "failing"], found[kind, "all"]) for kind in KINDS]
            gone = str(found["items", "gone"])
            kept = [
                _share(found["all", f"{what}, left"], found["all", what])
                for what in ("true values", "changed, true values")
            ]
            hints = _share(right, right + wrong)
            rows.append([name, language, str(len(some)), gone, *shares, _share(*control), hints, *kept])
    heads = [*(f"{kind}, failing" for kind in KINDS), "one value changed", "hints, right"]
    heads += ["values left", "beside the changed one"]
    print_table(["set", "language", "answers", "items gone", *heads], rows)
    lies = {name: lies_counted(some) for name, some in given.items() if any(one.lies for one in some)}
    lie_rows = [
        [name, kind, _share(found[kind, "failing"], found[kind, "all"])]
        for name, found in lies.items()
        for kind in sorted({kind for kind, _ in found})
    ]
    print_table(["set", "lie", "found"], lie_rows)
    if asked.show:
        for answer in [*given["open"], *given["work-open"]]:
            for failure in examine_candidate(answer.candidate, answer.shown).failures:
                print(f"\n{answer.talk}: {', '.join(value.text for value in failure.values)}: {failure.statement}")
    write_json("trust-ordinary", figures)
    return 0


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} = {part / max(whole, 1):.1%}"


if __name__ == "__main__":
    sys.exit(main())
