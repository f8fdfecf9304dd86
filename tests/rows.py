"""One test over many rows: as ``pytest.mark.parametrize``, where a test of its own for each row would cost more than
the row.

A row of a table of sentences takes a tenth of a millisecond, and each test that is collected, set up and reported takes
several in each process. All rows are tried, and every row that fails is told, also where another row is skipped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., Any]


def each(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Let a test go through rows, with the arguments of ``pytest.mark.parametrize``.

    The test's fixtures are made once for all rows, so that it must not matter what an earlier row has left in them.

    Raises:
        ValueError: There are no rows, so that nothing would be tested.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    given = [dict(zip(wanted, row if len(wanted) > 1 else (row,), strict=True)) for row in rows]
    if not given:
        message = f"there are no rows of {names}"
        raise ValueError(message)

    def over_rows(test: Test) -> Test:
        @wraps(test)
        def run(*bound: Any, **fixtures: Any) -> None:
            failures = _Failures()
            for row in given:
                with failures.of(row):
                    test(*bound, **fixtures, **row)
            failures.tell()

        @wraps(test)
        async def run_on_loop(*bound: Any, **fixtures: Any) -> None:
            failures = _Failures()
            for row in given:
                with failures.of(row):
                    await test(*bound, **fixtures, **row)
            failures.tell()

        made = run_on_loop if inspect.iscoroutinefunction(test) else run
        asked = inspect.signature(test)
        fixtures = [one for name, one in asked.parameters.items() if name not in wanted]
        setattr(made, "__signature__", asked.replace(parameters=fixtures))  # noqa: B010 - for mypy
        return made

    return over_rows


class _Failures:
    """The failures of some rows, each with its row."""

    def __init__(self) -> None:
        self._found: list[Exception] = []
        self._skipped: BaseException | None = None
        self._row: dict[str, Any] = {}

    def of(self, row: dict[str, Any]) -> _Failures:
        self._row = row
        return self

    def __enter__(self) -> None:
        """Nothing to do before a row."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Exception | pytest.fail.Exception):
            told = error if isinstance(error, Exception) else AssertionError(str(error))
            told.add_note(f"in the row {self._row!r}")
            self._found.append(told)
            return True
        if isinstance(error, pytest.skip.Exception):
            self._skipped = error
        return error is self._skipped

    def tell(self) -> None:
        """Raise what failed, if anything did, or else a skip."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise ExceptionGroup(f"{len(self._found)} rows failed", self._found)
        if self._skipped:
            raise self._skipped
