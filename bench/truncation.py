"""How many cut-off texts are found, and how many honest ones are taken for such.

``python -m bench.truncation [--talks 5]`` folds each talk of ``../shared/data/locomo`` with the offline model under
every preset, in parts, and looks at each state: as it is, and with one text cut at a word, or within one. Beside what
the doctor finds stands what the gate would refuse of the same texts; honest texts without their last full stop are
another control of the gate. Nothing of the data is printed or kept.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from app.domain.gating.cut_off import SURE, beside_of, weigh
from app.domain.gating.health import findings
from app.domain.gating.originals import Originals
from app.domain.policies.presets import PRESETS
from app.domain.states.state import StateSchema
from bench.replay import EVERYTHING, Replay
from bench.survival import Talk, talks

WINDOW: Final = 8_000
PART: Final = 120  # messages between two compactions
ENTRIES: Final = 3  # of each state that are cut
CUTS: Final = 40  # of one text, at most
SHORTEST: Final = 4  # letters of a word that is cut within
_CLOSED: Final = ".!?…"
Texts = Sequence[tuple[str, str, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A state with what it is about."""

    schema: StateSchema
    state: Mapping[str, Any]
    before: Mapping[str, Any] | None
    said: tuple[str, ...]

    def texts(self) -> Texts:
        """(field, text, whether it is a story)."""
        rows = ((one, self.state.get(one.name) or []) for one in self.schema.fields)
        return [
            (one.name, text, not one.is_list)
            for one, value in rows
            for text in (value if isinstance(value, list) else [value])
        ]

    def with_text(self, name: str, old: str, new: str) -> dict[str, Any]:
        """The state with another text in place of one."""
        value = self.state[name]
        changed = [new if text == old else text for text in value] if isinstance(value, list) else new
        return {**self.state, name: changed}


@dataclass(slots=True, kw_only=True)
class Rates:
    """Counts by kind of text: how many there were, how many the doctor and the gate took for cut off."""

    looked: Counter[str] = field(default_factory=Counter)
    doctor: Counter[str] = field(default_factory=Counter)
    gate: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, *, doctor: bool, gate: bool) -> None:
        """One text."""
        self.looked[kind] += 1
        self.doctor[kind] += doctor
        self.gate[kind] += gate


def measured(looked: Sequence[Looked], seed: int = 1) -> Rates:
    """Every state as it is, without full stops, and with texts that are cut."""
    rates, draw = Rates(), random.Random(seed)
    for one in looked:
        originals = Originals(partial(tuple, one.said))
        texts = one.texts()
        entries = [text for text in texts if not text[2]]
        for name, text, is_story in texts:
            _look(rates, "honest", one, originals, (name, text, is_story), text)
            if text.endswith("."):
                _look(rates, "without its full stop", one, originals, (name, text, is_story), text.rstrip("."))
        stories = [text for text in texts if text[2]]
        for chosen in [*stories, *draw.sample(entries, min(ENTRIES, len(entries)))]:
            kind = "story" if chosen[2] else "entry"
            cuts = list(_cuts(chosen[1], draw))
            for how, cut in draw.sample(cuts, min(CUTS, len(cuts))):
                _look(rates, f"{kind} cut {how}", one, originals, chosen, cut)
    return rates


def _look(rates: Rates, kind: str, one: Looked, originals: Originals, old: tuple[str, str, bool], cut: str) -> None:
    name, text, is_story = old
    state = one.with_text(name, text, cut)
    found = findings(one.schema, state, covered_messages=len(one.said), originals=originals, before=one.before)
    beside = beside_of([(each, cut if said == text else said, story) for each, said, story in one.texts()], originals)
    rates.add(
        kind,
        doctor=any(each.text == cut for each in found),
        gate=weigh(cut, is_story=is_story, beside=beside(name, cut)) >= SURE,
    )


def _cuts(text: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    """The text up to each word, three words at least, and within each; where a sentence ends nothing is cut."""
    words = text.split(" ")
    for count in range(3, len(words)):
        head = " ".join(words[:count])
        if not head.endswith(tuple(_CLOSED)):
            yield "at a word", head
        if len(words[count]) >= SHORTEST:
            yield "within a word", f"{head} {words[count][: draw.randint(2, len(words[count]) - 2)]}"


def states(talk: Talk, presets: Sequence[str] = tuple(PRESETS)) -> Iterator[Looked]:
    """A talk's states after each part, under each preset."""
    for preset in presets:
        replay = Replay.in_window(WINDOW, preset)
        before: Mapping[str, Any] | None = None
        for number, message in enumerate(talk.messages, start=1):
            replay.say("user" if number % 2 else "assistant", message["content"])
            if number % PART or not replay.fold(EVERYTHING):
                continue
            state = _state(replay)
            said = tuple(each.content for each in replay.messages[: replay.boundary])
            yield Looked(schema=replay.schema, state=state, before=before, said=said)
            before = state


def _state(replay: Replay) -> dict[str, Any]:
    kept = [entry for entry in replay.entries if not entry.pruned]
    lists = {one.name: [entry.text for entry in kept if entry.field == one.name] for one in replay.schema.fields}
    return {one.name: lists[one.name] if one.is_list else " ".join(lists[one.name]) for one in replay.schema.fields}


def table(rates: Rates) -> str:
    """As Markdown."""
    lines = ["| text | looked at | the doctor | the gate |", "|---|---:|---:|---:|"]
    for kind in sorted(rates.looked):
        count = rates.looked[kind]
        lines.append(f"| {kind} | {count} | {rates.doctor[kind] / count:.1%} | {rates.gate[kind] / count:.1%} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--talks", type=int, default=5)
    chosen = talks()[: parser.parse_args().talks]
    if not chosen:
        sys.exit("The conversations of LoCoMo are not beside this checkout.")
    print(table(measured([one for talk in chosen for one in states(talk)])))


if __name__ == "__main__":
    main()
