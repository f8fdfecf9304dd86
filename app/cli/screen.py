"""Prints the output of commands: with colours and tables in a terminal, as plain lines into a file or a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pydantic import BaseModel
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from app.core.text.localization.catalogue import CATALOGUES, FALLBACK, Catalogue

DIM: Final = "bright_black"
_COLUMN_GAP: Final = "  "
_ALLOWED: Final = "\n\t"
_MIN_TEXT_COLUMNS: Final = 20
"""The fewest columns of a terminal in which a text can be recognised."""


def replace_unprintable() -> None:
    """Let standard output print a question mark for characters that its encoding lacks."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")


class Screen:
    """Standard output. Texts come from models and strangers, so control characters in them never reach a terminal."""

    def __init__(self, catalogue: Catalogue = CATALOGUES[FALLBACK], *, wraps: bool = False) -> None:
        self.catalogue: Final = catalogue
        """The catalogue of the command line's own texts, in the reader's language."""
        self._wraps = wraps
        """Whether long lines are broken between words: easier to read, harder to copy."""
        replace_unprintable()
        self._console = Console(highlight=False)
        self.is_terminal = self._console.is_terminal and not self._console.is_dumb_terminal

    @property
    def width(self) -> int:
        """The number of columns of the terminal."""
        return self._console.width

    def line(self, *parts: str | tuple[str, str] | Text) -> None:
        """Print one line, or more if the text has line ends; a part may have a style."""
        self._print(_styled_text(parts), "\n", wraps=self._wraps)

    def piece(self, text: str) -> None:
        """Print a piece of a line at once; the next piece follows on the same line."""
        self._print(Text(safe(text)), "")

    @contextmanager
    def status(self) -> Iterator[Callable[..., None]]:
        """Yield a function that shows its parts, as ``line`` does, on a status line below whatever is printed.

        The line is cut at the terminal's width and removed at the end of the block. Outside a terminal there is none.
        """
        if not self.is_terminal:
            yield lambda *_: None
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            yield lambda *parts: live.update(self._in_one_row(parts), refresh=True)

    def row(self, *parts: str | tuple[str, str] | Text) -> None:
        """Print one line, cut at the width of a terminal."""
        self._print(self._in_one_row(parts), "\n")

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        shrinks: int | None = None,
        spare: Sequence[int] = (),
    ) -> None:
        """Print rows under the names of their columns.

        If the terminal is too narrow, the text in cells is broken into lines. With a column that ``shrinks``, each row
        stays one line: that column is cut, and the ``spare`` columns are dropped in their order.
        """
        lines: list[Sequence[str]] = [[one_line(cell) for cell in row] for row in rows]
        if not self.is_terminal:
            self._write_plain_table([list(columns), *lines])
            return
        if shrinks is not None:
            columns, *lines = self._rows_in_width([columns, *lines], shrinks, spare)
        table = Table(*(f"[{DIM}]{name}[/]" for name in columns), box=None, pad_edge=False)
        for row in lines:
            table.add_row(*(Text(cell, overflow="fold") for cell in row))
        self._console.print(table)

    def json(self, value: Any) -> None:
        """Print a value as JSON, for programs."""
        self._write(as_json(value) + "\n")

    def _rows_in_width(
        self, rows: Sequence[Sequence[str]], shrinks: int, spare: Iterable[int]
    ) -> Iterator[Sequence[str]]:
        """The rows within the terminal's width, without the columns for which there is no room."""
        widths = dict(enumerate(_widths(rows)))
        del widths[shrinks]
        dropped = iter(spare)
        while (free_width := self.width - sum(widths.values()) - len(_COLUMN_GAP) * len(widths)) < _MIN_TEXT_COLUMNS:
            if (column := next(dropped, None)) is None:
                break
            del widths[column]
        for row in rows:
            cut = Text(row[shrinks])
            cut.truncate(max(free_width, 1), overflow="ellipsis")
            yield [
                cut.plain if index == shrinks else cell
                for index, cell in enumerate(row)
                if index in widths or index == shrinks
            ]

    def _write_plain_table(self, rows: Sequence[Sequence[str]]) -> None:
        widths = _widths(rows)
        for row in rows:
            cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
            self._write(_COLUMN_GAP.join(cells).rstrip() + "\n")

    def _print(self, text: Text, end: str, *, wraps: bool = False) -> None:
        if self.is_terminal:
            self._console.print(text, end=end, soft_wrap=not wraps)
        else:
            self._write(text.plain + end)

    def _in_one_row(self, parts: Iterable[str | tuple[str, str] | Text]) -> Text:
        text = _styled_text(parts)
        if self.is_terminal:
            text.truncate(self.width - len("^C"), overflow="ellipsis")
        return text

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def progress_on_stderr(*further: ProgressColumn, is_shown: bool = True) -> Progress:
    """A progress bar that is removed at the end. Outside a terminal nothing is shown."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *further)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal or not is_shown)


def as_json(value: Any) -> str:
    """Resources, also in lists and mappings, as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=_plain_value)


def _plain_value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return str(value)


def safe(text: str) -> str:
    """The text without control characters; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(sign for sign in text if sign in _ALLOWED or not _is_control_character(sign))


def _is_control_character(sign: str) -> bool:
    code = ord(sign)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000  # noqa: PLR2004 - C0, C1, surrogates


def one_line(text: str) -> str:
    """The safe text on one line: each run of blanks and line ends becomes one blank."""
    return " ".join(safe(text).split())


def _styled_text(parts: Iterable[str | tuple[str, str] | Text]) -> Text:
    whole = Text()
    for part in parts:
        if isinstance(part, Text):
            whole.append_text(part)
        elif isinstance(part, tuple):
            whole.append(safe(part[0]), style=part[1])
        else:
            whole.append(safe(part))
    return whole
