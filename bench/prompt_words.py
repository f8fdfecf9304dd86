"""The versions of the summarizer's prompt that can be compared, and the answers under each.

A version is a file of ``bench/prompt_versions`` with the rules in which it differs from the present code, which is a
version itself. Everything else in a prompt is today's, including the schema of the answer.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

from app.core.summarizer.prompts import PROMPT_WORDS, SUMMARY_VERSION, PromptWords
from bench.fidelity_made import FOLDER as MADE
from bench.report import FOLDER
from bench.trust import rounds
from bench.trust.rounds import Case, Talk

VERSIONS: Final = Path(__file__).resolve().parent / "prompt_versions"
WRITTEN: Final = Path(__file__).resolve().parent / "prompt_answers"
"""The folder with answers that are kept in the repository in addition to those of ``bench/trust``."""
MADE_PRESET: Final = "semantic"
MADE_LANGUAGES: Final = ("en", "ru", "zh")


class PromptVersionError(Exception):
    """There is no such version, or its file has a rule that does not exist; the message is one line."""


def known_versions(folder: Path = VERSIONS) -> list[str]:
    """The present version, and those with a file."""
    return [SUMMARY_VERSION, *sorted(path.stem for path in folder.glob("*.toml"))]


def words_of(version: str, folder: Path = VERSIONS) -> PromptWords:
    """The rules of a version. Raises ``PromptVersionError``."""
    if version == SUMMARY_VERSION:
        return PROMPT_WORDS
    path = folder / f"{version}.toml"
    if version not in known_versions(folder):
        raise PromptVersionError(f"There is no version {version!r}: there are {', '.join(known_versions(folder))}.")
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise PromptVersionError(f"{path.name} cannot be read: {error}.") from None
    names = {field.name for field in fields(PromptWords)}
    wrong = sorted(name for name, text in given.items() if name not in names or not isinstance(text, str))
    if wrong or not given:
        may = ", ".join(sorted(names))
        raise PromptVersionError(
            f"{path.name} must give texts of {may}, and nothing else; {', '.join(wrong) or 'none'}."
        )
    return replace(PROMPT_WORDS, **given)


def corpus() -> list[Case]:
    """The cases that are compared: those of the open half of ``bench/trust``, and the beginnings of the made-up talks.

    The latter have no recorded answer: their answer and version are empty.
    """
    return [*rounds.cases(), *_made()]


def written(version: str, cases: Sequence[Case], folder: Path = WRITTEN) -> dict[str, Case]:
    """The cases by id, with a writer's answer under that version, from the corpus or the repository's folder."""
    own = {case.id: case for case in cases if case.prompt_version == version and case.answer}
    return own | recorded(version, cases, folder)


def recorded(version: str, cases: Sequence[Case], folder: Path = FOLDER) -> dict[str, Case]:
    """The cases by id, with the answer under that version from a folder, such as one that ``--live`` wrote."""
    by_id = {case.id: case for case in cases}
    return {
        name: replace(by_id[name], answer=answer, prompt_version=version)
        for name, answer in _answers(path_of(version, folder)).items()
        if name in by_id
    }


def path_of(version: str, folder: Path = FOLDER) -> Path:
    """The file in a folder with the answers under a version."""
    return folder / f"prompts-{version}.jsonl"


def record(version: str, answers: Mapping[str, str], folder: Path = FOLDER) -> Path:
    """Add answers to those kept for later comparisons; return the file."""
    path = path_of(version, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {**_answers(path), **answers}
    lines = (json.dumps({"case": name, "answer": answer}, ensure_ascii=False) for name, answer in kept.items())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _answers(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip())
    return {one["case"]: one["answer"] for one in lines}


def _made() -> Iterator[Case]:
    """The first round of each made-up talk."""
    for path in sorted(MADE.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            data = json.loads(line)
            talk = Talk(
                id=data["id"],
                language=next((one for one in MADE_LANGUAGES if data["id"].endswith(f"-{one}")), "en"),
                kind="made-up",
                messages=tuple(rounds.message_of(seq, one) for seq, one in enumerate(data["messages"], start=1)),
                questions=(),
                presets=(MADE_PRESET,),
                is_sealed=False,
            )
            request = rounds.request_of(talk, MADE_PRESET, 1, (), rounds.anchors_of(talk, MADE_PRESET, 1))
            yield Case(talk=talk, preset=MADE_PRESET, round=1, answer="", request=request, prompt_version="")
