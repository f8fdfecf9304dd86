"""Measures the error of the estimate for each kind of text, compared with the two rules of thumb."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from app.core.text.token_counts import BYTES_PER_TOKEN, byte_length, estimate_text
from bench.report import print_table, write_json
from bench.tokens.corpus import LANGUAGES, Page

ESTIMATORS: Final[Mapping[str, Callable[[str], float]]] = {
    "script": estimate_text,
    "characters / 4": lambda text: -(-len(text) // BYTES_PER_TOKEN),
    "bytes / 4": lambda text: -(-byte_length(text) // BYTES_PER_TOKEN),
}

CLAIMED: Final = 0.10
"""The claimed bound of the error of every kind's total."""

_FIRST: Final = ("English chat", "English prose", "markdown", "JSON", "mixed", "emoji-rich chat", "capitals")
_PAGE: Final = 1_200  # characters of a talk that are counted together


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Relative errors of one estimator on one kind of text: ``total`` is of the sums, ``p90`` of absolute errors."""

    total: float
    median: float
    p90: float


def errors(pages: Sequence[Page]) -> dict[str, Error]:
    """The error of every estimator on these pages."""
    return {name: _error(pages, estimate) for name, estimate in ESTIMATORS.items()}


def _error(pages: Sequence[Page], estimate: Callable[[str], float]) -> Error:
    estimated = [estimate(page.text) for page in pages]
    single = [value / page.tokens - 1 for value, page in zip(estimated, pages, strict=True)]
    sizes = sorted(map(abs, single))
    return Error(
        total=sum(estimated) / sum(page.tokens for page in pages) - 1,
        median=statistics.median(single),
        p90=sizes[int(0.9 * (len(sizes) - 1))],
    )


def talks(folder: Path) -> Iterator[Page]:
    """Pages of the conversations to measure on, if they are there; nothing is ever fitted on them."""
    for name, path in (("LoCoMo (chat)", "locomo/conversations"), ("tau-bench (agent)", "tau_bench/airline")):
        file = folder / f"{path}.jsonl"
        for line in file.read_text().splitlines() if file.exists() else ():
            page = ""
            for message in json.loads(line)["messages"]:
                page += "\n".join([message.get("content") or "", *map(_sent, message.get("parts") or [])]) + "\n"
                if len(page) >= _PAGE:
                    yield Page("held", name, file.parent.name, page)
                    page = ""


def _sent(part: Mapping[str, Any]) -> str:
    value = part.get("arguments") or part.get("content") or part.get("text") or ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{part.get('name') or ''} {text}".strip()


def report(pages: Sequence[Page]) -> bool:
    """Print the table and write it as JSON; return whether every kind is within the claimed bound."""
    by_kind: dict[str, list[Page]] = {}
    for page in pages:
        if page.split == "held":
            by_kind.setdefault(page.kind, []).append(page)
    kinds = sorted(by_kind, key=_place)
    found = {kind: errors(by_kind[kind]) for kind in kinds}
    print_table(
        ["text", "pages", "tokens", "script", "median", "p90", *(f"{name} (p90)" for name in list(ESTIMATORS)[1:])],
        [_cells(kind, by_kind[kind], found[kind]) for kind in kinds],
    )
    values = {
        kind: {
            "pages": len(by_kind[kind]),
            "tokens": sum(page.tokens for page in by_kind[kind]),
            "sources": sorted({page.source for page in by_kind[kind]}),
            "errors": {name: asdict(error) for name, error in found[kind].items()},
        }
        for kind in kinds
    }
    write_json("tokens-error", values)
    outside = [kind for kind in kinds if abs(found[kind]["script"].total) > CLAIMED]
    print(f"\n{len(kinds) - len(outside)} of {len(kinds)} kinds within ±{CLAIMED:.0%}", *outside)
    return not outside


def _place(kind: str) -> tuple[int, int, str]:
    languages = list(LANGUAGES)
    group = 0 if kind in _FIRST else 1 if kind.startswith("code") else 2 if kind in LANGUAGES else 3
    return group, languages.index(kind) if kind in LANGUAGES else 0, kind


def _cells(kind: str, pages: Sequence[Page], found: Mapping[str, Error]) -> list[str]:
    script, *others = found.values()
    return [
        kind,
        str(len(pages)),
        str(sum(page.tokens for page in pages)),
        *(f"{value:+.1%}" for value in (script.total, script.median)),
        f"{script.p90:.1%}",
        *(f"{error.total:+.1%} ({error.p90:.0%})" for error in others),
    ]
