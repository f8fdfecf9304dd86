"""The bench's traces: paths, stays, returns and calls of parsers, on modules that are made for it."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import walks
from bench.walks import Profiler, Trace, unknown_parsers, walk_of

FIRST = """
from made_second import read, lines

def run(text):
    helper()
    for _ in range(3):
        read(text)
    return last(text)

def helper():
    pass

def last(text):
    return list(lines(text))
"""
SECOND = """
def read(text):
    return len(text)

def lines(text):
    for line in text.split():
        yield line
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """The first of two modules that call each other's functions."""
    for name, source in (("made_second", SECOND), ("made_first", FIRST)):
        (tmp_path / f"{name}.py").write_text(source)
        spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    monkeypatch.setattr(walks, "PARSERS", {"words": ("made_second.py:read",), "lines": ("made_second.py:lines",)})
    found: Callable[[str], Any] = sys.modules["made_first"].run
    return found


def traced(trace: Trace, work: Callable[[], object]) -> None:
    profiler = Profiler()
    with profiler.installed(), profiler.recording(trace):
        work()


def test_a_path_has_each_function_once_and_a_loop_only_crosses_again(run: Callable[[str], Any], tmp_path: Path) -> None:
    trace = Trace(app=tmp_path)
    traced(trace, lambda: run("one two three"))
    walk = walk_of(trace, 13)

    assert trace.path == ["made_first.py", "made_first.py", "made_second.py", "made_first.py", "made_second.py"]
    assert (walk.functions, walk.modules, walk.hops, walk.returns) == (5, 2, 3, 2)
    assert walk.crossings == 4
    assert walk.most_visited == {"made_first.py": 2, "made_second.py": 2}


def test_a_parser_is_counted_with_its_texts_and_a_generator_once(run: Callable[[str], Any], tmp_path: Path) -> None:
    trace = Trace(app=tmp_path)
    traced(trace, lambda: run("one two three"))

    assert walk_of(trace, 13).parsers == {
        "words": {"calls": 3, "texts": 1, "times": 3.0},
        "lines": {"calls": 1, "texts": 1, "times": 1.0},
    }


def test_a_trace_may_begin_later(run: Callable[[str], Any], tmp_path: Path) -> None:
    trace = Trace(app=tmp_path, begins_at="last")
    traced(trace, lambda: run("one"))

    assert trace.path == ["made_first.py", "made_second.py"]
    assert trace.parsed["words"] == 0


def test_other_threads_are_traced_and_nothing_outside_a_recording(run: Callable[[str], Any], tmp_path: Path) -> None:
    trace, profiler = Trace(app=tmp_path), Profiler()
    with profiler.installed():
        run("before")
        with profiler.recording(trace):
            thread = threading.Thread(target=run, args=("within",))
            thread.start()
            thread.join()
        run("after")

    assert trace.texts == {("words", "within"), ("lines", "within")}


def test_every_parser_is_where_the_table_says() -> None:
    assert not unknown_parsers()


def test_a_parser_that_moved_is_named(tmp_path: Path) -> None:
    assert "core/text/words.py:stems" in unknown_parsers(tmp_path)
