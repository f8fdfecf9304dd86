"""The mutations: which are found, how they are chosen and applied, how a trial ends, and what a comparison says."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from coverage import Coverage

from bench import mutations
from bench.figures import tests as test_figures
from bench.mutations_operators import (
    Mutation,
    chosen,
    definition_lines,
    line_of,
    mutated,
    mutations_of,
    statement_lines,
)
from bench.mutations_trials import Bench, Reach, Trial, run_tests, seconds_of, tier_of
from tests.rows import each

ROOT: Final = Path(__file__).parents[2]


def found(source: str) -> set[tuple[str, str]]:
    return {(one.kind, one.new.strip()) for one in mutations_of(source, file="a.py", area="a")}


@each(
    ("line", "expected"),
    [
        ("x = a < b", {("boundary", "x = a <= b"), ("comparison", "x = a >= b")}),
        ("x = (a) >= (b)", {("boundary", "x = (a) > (b)"), ("comparison", "x = (a) < (b)")}),
        ("x = a == b", {("comparison", "x = a != b")}),
        ("x = a is not b", {("comparison", "x = a is b")}),
        ("x = a in b", {("comparison", "x = a not in b")}),
        ("x = a and b and c", {("logic", "x = a or b and c"), ("logic", "x = a and b or c")}),
        ("x = a + b", {("arithmetic", "x = a - b")}),
        ("x = a - b", {("arithmetic", "x = a + b")}),
        ("x += a", {("arithmetic", "x -= a"), ("statement", "pass")}),
        ("x = not a", {("not", "x = a")}),
        ("x = min(a, b)", {("extreme", "x = max(a, b)")}),
        ("x = True", {("truth", "x = False")}),
        ("x = 7", {("number", "x = 8"), ("number", "x = 6")}),
        ("x = 0.25", {("number", "x = 1.25"), ("number", "x = -0.75")}),
        ("x = b if a else c", {("condition", "x = b if True else c")}),
        ("x = [a for a in b if a]", {("condition", "x = [a for a in b if True]")}),
        ("a.append(b)", {("statement", "pass")}),
        ("a.b = c", {("statement", "pass")}),
        ("x = 'ж', min(a)", {("extreme", "x = 'ж', max(a)")}),
    ],
)
def test_every_operator_finds_its_places(line: str, expected: set[tuple[str, str]]) -> None:
    assert found(line) == expected


def test_statements_that_end_a_step_or_a_function_are_found() -> None:
    source = "def f(a):\n    for b in a:\n        if b:\n            continue\n        raise E(1)\n    return a\n"

    assert found(source) == {
        ("condition", "if True:"),
        ("statement", "pass"),
        ("return", "return None"),
    }
    assert Counter(one.old.strip() for one in mutations_of(source, file="a.py", area="a")) == {
        "if b:": 1,
        "continue": 1,
        "raise E(1)": 1,
        "return a": 1,
    }


@each(
    "source",
    [
        '"""One and 1."""',
        "x: Literal[1, True]",
        "def f(a: Annotated[int, 1]) -> Annotated[int, 2]: ...",
        "log.info('a', seconds=a - b)",
        "await _log.awarning('a', last=not a)",
        "__all__ = ['a'][:1]",
        "@dataclass(slots=True)\nclass A: ...",
        "@lru_cache(1)\ndef f(): ...",
        "x = field(kw_only=True)",
        "x = f'{a + 1} of {not b}'",
        "x = 'a' + b",
        "assert a is not None",
        "return_ = None",
        "def f():\n    return None",
        "def __init__(self):\n    self.a = b",
        "x = a +\\\n    b",
    ],
)
def test_what_no_test_should_notice_is_left_alone(source: str) -> None:
    assert found(source) == set()


def test_the_text_of_an_error_is_left_alone_and_its_raising_is_not() -> None:
    assert found("raise E(f'{a}', 1 + b, not c)") == {("statement", "pass")}


def test_a_moment_has_no_boundary() -> None:
    assert found("x = a < now()") == {("comparison", "x = a >= now()")}


def test_a_replacement_that_is_no_python_is_left_out() -> None:
    assert all(compile(one.new.strip(), "a", "exec") for one in mutations_of("x = (a) + (b)\n", file="a", area="a"))
    assert found("x = [a for a in b if (c := a)]") == set()


SOURCE: Final = "def f(a):\n    a += 1\n    a += 1\n    return a\n"


def test_a_mutation_names_its_line_by_text_and_by_which_of_the_equal_lines_it_is() -> None:
    second = next(
        one for one in mutations_of(SOURCE, file="a.py", area="a") if one.occurrence == 2 and one.kind == "arithmetic"
    )

    assert line_of(SOURCE, second) == 3
    assert mutated(SOURCE, second) == "def f(a):\n    a += 1\n    a -= 1\n    return a\n"
    moved = "import os\n\n\n" + SOURCE
    assert line_of(moved, second) == 6
    assert mutated(moved.replace("    a += 1\n", "", 1), second) is None


def many(areas: dict[str, int]) -> list[Mutation]:
    return [
        Mutation(area=area, file=f"{area}.py", kind=kind, old=f"line {number}", new=kind, occurrence=1)
        for area, count in areas.items()
        for number in range(count)
        for kind in ("boundary", "logic", "return")
    ]


def test_areas_have_equal_parts_as_far_as_they_reach() -> None:
    taken = chosen(many({"a": 40, "b": 40, "c": 3}), count=33, seed=7)

    assert Counter(one.area for one in taken) == {"a": 15, "b": 15, "c": 3}
    assert len({(one.file, one.old) for one in taken}) == 33


def test_kinds_come_in_turn() -> None:
    taken = chosen(
        [*many({"a": 40}), *(replace(one, kind="number") for one in many({"a": 400})[300:])], count=12, seed=7
    )

    assert set(Counter(one.kind for one in taken).values()) == {3}


def test_the_seed_decides() -> None:
    candidates = many({"a": 40, "b": 40})

    assert chosen(candidates, count=20, seed=7) == chosen(candidates, count=20, seed=7)
    assert chosen(candidates, count=20, seed=7) != chosen(candidates, count=20, seed=8)


def test_lines_outside_of_functions_run_at_import() -> None:
    source = "A = 1\n\n\nclass B:\n    c = 2\n\n    def d(self, e=3):\n        return e\n"

    assert definition_lines(source) - {2, 3, 6, 9} == {1, 4, 5, 7}


def test_the_lines_of_a_statement_are_those_of_its_head() -> None:
    source = "def f(a):\n    if (\n        a\n        > 1\n    ):\n        return (\n            a\n        )\n"

    assert statement_lines(source, 4) == range(2, 6)
    assert statement_lines(source, 7) == range(6, 9)


# --- the committed list --------------------------------------------------------------------------------------------


def test_the_list_has_enough_of_every_area_and_no_line_twice() -> None:
    listed = mutations.read_list()

    assert len(listed) >= 60
    by_area = Counter(one.area for one in listed)
    assert set(by_area) == set(mutations.AREAS)
    assert min(by_area.values()) >= 12
    assert len({(one.file, one.old, one.occurrence) for one in listed}) == len(listed)
    assert len({one.kind for one in listed}) == 11


def test_choosing_twice_writes_the_same(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("a", "b"):
        folder = tree / "app" / "core" / ("planning" if name == "a" else "model/policies")
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(SOURCE)

    for out in ("first", "second"):
        mutations.main(["choose", "--tree", str(tree), "--seed", "3", "--count", "4", "--out", str(tmp_path / out)])

    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert Counter(one.area for one in mutations.read_list(tmp_path / "first")) == {"planning": 2, "policies": 2}


# --- trials --------------------------------------------------------------------------------------------------------

CODE: Final = """\
LIMIT = 3


def fits(number):
    return number <= LIMIT


def waits(number):
    while number < 1:
        number += 1
    return number


def unseen(number):
    return number + 1
"""
TESTS: Final = """\
import os
import pathlib

from app import code


def test_small():
    assert code.fits(1)


def test_limit():
    assert code.fits(3) and not code.fits(4)


def test_waits():
    assert code.waits(0) == 1


def test_noise():
    assert code.waits(0) and "CONTROL" not in pathlib.Path("noise").read_text()
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of one module, with its tests."""
    root = tmp_path / "project"
    for folder in ("app", "bench", "tests/unit"):
        (root / folder).mkdir(parents=True)
        (root / folder / "__init__.py").touch()
    (root / "tests" / "__init__.py").touch()
    (root / "app" / "code.py").write_text(CODE)
    (root / "tests" / "unit" / "test_code.py").write_text(TESTS)
    (root / "noise").write_text("")
    (root / "pytest.ini").write_text("[pytest]\n")
    return root


@pytest.fixture
def reach(tree: Path, tmp_path: Path) -> Reach:
    """The file that pytest with coverage would have written, made without running pytest within pytest."""
    file = tmp_path / "reach.coverage"
    coverage = Coverage(data_file=str(file), branch=True)
    data = coverage.get_data()
    tests = "tests/unit/test_code.py"
    for context, arcs in {
        "": [(1, 4), (4, 8), (8, 14)],
        f"{tests}::test_small|run": [(-4, 5), (5, -4)],
        f"{tests}::test_limit|run": [(-4, 5), (5, -4)],
        f"{tests}::test_waits|run": [(-8, 9), (9, 10), (10, 9), (9, 11)],
        f"{tests}::test_noise|run": [(-8, 9), (9, 10), (10, 9), (9, 11)],
    }.items():
        data.set_context(context)
        data.add_arcs({str(tree / "app" / "code.py"): arcs})
    data.write()
    return Reach(file, tree, {f"{tests}::test_small": 0.1, f"{tests}::test_limit": 0.2, f"{tests}::test_noise": 0.1})


def mutation(old: str, new: str) -> Mutation:
    return Mutation(area="a", file="app/code.py", kind="k", old=old, new=new, occurrence=1)


BOUNDARY: Final = mutation("    return number <= LIMIT", "    return number < LIMIT")
LESS: Final = mutation("    while number < 1:", "    while number <= 0:")
ENDLESS: Final = mutation("        number += 1", "        pass")
UNSEEN: Final = mutation("    return number + 1", "    return number - 1")
GONE: Final = mutation("    return number", "    return None")


def test_tests_that_reach_a_line_come_shortest_first(reach: Reach) -> None:
    assert reach.tests(BOUNDARY) == ["tests/unit/test_code.py::test_small", "tests/unit/test_code.py::test_limit"]
    assert reach.tests(UNSEEN) == []


def test_tests_with_servers_stay_together_by_file(tree: Path, tmp_path: Path) -> None:
    tests = [f"tests/integration/{name}" for name in ("test_b.py::x", "test_b.py::y", "test_a.py::x", "test_a.py::y")]
    file = tmp_path / "some.coverage"
    data = Coverage(data_file=str(file), branch=True).get_data()
    for test in tests:
        data.set_context(f"{test}|call")
        data.add_arcs({str(tree / "app" / "code.py"): [(-4, 5), (5, -4)]})
    data.write()

    assert Reach(file, tree, dict(zip(tests, (1, 2, 1.5, 40), strict=True))).tests(BOUNDARY) == tests


def test_a_constant_is_reached_by_all_tests_of_its_module(reach: Reach) -> None:
    assert len(reach.tests(mutation("LIMIT = 3", "LIMIT = 4"))) == 4


def test_a_constant_among_nothing_but_data_is_reached_by_the_tests_of_its_package(tree: Path, reach: Reach) -> None:
    (tree / "app" / "data.py").write_text("LIMIT = 3\n")

    assert len(reach.tests(replace(mutation("LIMIT = 3", "LIMIT = 4"), file="app/data.py"))) == 4


def test_a_function_that_also_runs_at_import_is_reached_by_all_tests_of_its_module(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "some.coverage"
    data = Coverage(data_file=str(file), branch=True).get_data()
    for context, arcs in {"": [(-4, 5), (5, -4)], "t::a|run": [(-4, 5), (5, -4)], "t::b|run": [(-14, 15)]}.items():
        data.set_context(context)
        data.add_arcs({str(tree / "app" / "code.py"): arcs})
    data.write()

    assert Reach(file, tree, {}).tests(BOUNDARY) == ["t::a", "t::b"]


def try_one(tree: Path, reach: Reach, one: Mutation, *, most_seconds: float = 600) -> Trial:
    bench = Bench(tree, reach, most_seconds=most_seconds)
    with bench.copies(1) as (copy,):
        trial = bench.try_one(one, copy=copy)
        assert (copy / "app" / "code.py").read_text() == CODE
    return trial


@pytest.mark.long
def test_a_mutation_is_killed_by_the_first_test_that_fails(tree: Path, reach: Reach) -> None:
    trial = try_one(tree, reach, BOUNDARY)

    assert (trial.outcome, trial.test) == ("killed", "tests/unit/test_code.py::test_limit")
    assert (trial.reaching, trial.passed) == (2, 1)
    assert [path.name for path in tree.parent.iterdir() if path.name.startswith("mutated-")] == []


@pytest.mark.long
def test_a_mutation_that_changes_nothing_survives(tree: Path, reach: Reach) -> None:
    trial = try_one(tree, reach, LESS)

    assert (trial.outcome, trial.test, trial.passed) == ("survived", None, 2)


@pytest.mark.long
def test_a_test_that_fails_without_the_mutation_kills_nothing(tree: Path, reach: Reach) -> None:
    (tree / "noise").write_text("CONTROL")

    trial = try_one(tree, reach, LESS)

    assert (trial.outcome, trial.noise) == ("survived", ("tests/unit/test_code.py::test_noise",))
    assert trial.passed == 1


@pytest.mark.long
@pytest.mark.parametrize(("clock", "outcome"), [("import time  # monotonic", "survived"), ("", "killed")])
def test_a_failure_by_the_clock_counts_when_it_comes_again(tree: Path, reach: Reach, clock: str, outcome: str) -> None:
    """The control: in a file that does not look at a clock the first failure counts."""
    (tree / "tests" / "unit" / "test_code.py").write_text(
        f"import pathlib\nfrom app import code\n{clock}\n\n\ndef test_waits():\n"
        "    first = not pathlib.Path('again').exists()\n    pathlib.Path('again').touch()\n"
        "    assert not first or '<= 0' not in pathlib.Path('app/code.py').read_text()\n"
    )

    trial = try_one(tree, reach, LESS)

    assert trial.outcome == outcome, trial
    assert (trial.test or trial.noise[0]) == "tests/unit/test_code.py::test_waits"


@pytest.mark.long
def test_properties_do_not_fail_on_a_busy_machine(tree: Path) -> None:
    shutil.copy(ROOT / "bench" / "mutations_plugin.py", tree / "bench")
    (tree / "tests" / "unit" / "test_code.py").write_text(
        "import time\nfrom hypothesis import given, strategies\n\n\n@given(strategies.integers())\n"
        "def test_slow(number):\n    time.sleep(0.25 if number == 0 else 0)\n"
    )

    assert run_tests(tree, ["tests/unit/test_code.py::test_slow"], seconds=600).failed is None


@pytest.mark.long
def test_a_trial_that_does_not_end_is_ended(tree: Path, reach: Reach) -> None:
    assert try_one(tree, reach, ENDLESS, most_seconds=4).outcome == "timeout"


@pytest.mark.long
def test_a_run_that_somebody_interrupts_has_not_ended(tree: Path) -> None:
    shutil.copy(ROOT / "bench" / "mutations_plugin.py", tree / "bench")
    (tree / "tests" / "unit" / "test_code.py").write_text(
        "import os, signal\n\n\ndef test_interrupted():\n    os.kill(os.getpid(), signal.SIGINT)\n"
    )

    run = run_tests(tree, ["tests/unit/test_code.py::test_interrupted"], seconds=600)

    assert (run.ended, run.failed) == (False, None)


@pytest.mark.long
def test_a_module_that_cannot_be_imported_is_a_kill(tree: Path, reach: Reach) -> None:
    trial = try_one(tree, reach, mutation("LIMIT = 3", "LIMIT = 3 / 0"))

    assert (trial.outcome, trial.test) == ("killed", "tests/unit/test_code.py")


@pytest.mark.parametrize(("one", "outcome"), [(UNSEEN, "unreached"), (GONE, "gone")])
def test_a_line_that_is_gone_or_not_reached_is_said_so(tree: Path, reach: Reach, one: Mutation, outcome: str) -> None:
    (tree / "app" / "code.py").write_text(CODE.replace("    return number\n", "    return number  # still\n"))
    bench = Bench(tree, reach)

    with bench.copies(1) as (copy,):
        assert bench.try_one(one, copy=copy).outcome == outcome


@pytest.mark.long
def test_processes_that_a_run_leaves_behind_are_ended(tree: Path) -> None:
    shutil.copy(ROOT / "bench" / "mutations_plugin.py", tree / "bench")
    (tree / "tests" / "unit" / "test_code.py").write_text(
        "import pathlib, subprocess, sys\n\n\ndef test_leaves():\n"
        "    left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "    pathlib.Path('pid').write_text(str(left.pid))\n"
    )

    run = run_tests(tree, ["tests/unit/test_code.py::test_leaves"], seconds=600)

    status = Path("/proc") / (tree / "pid").read_text() / "status"
    assert run.passed == ("tests/unit/test_code.py::test_leaves",)
    assert not status.exists() or "State:\tZ" in status.read_text()


@pytest.mark.long
def test_a_run_writes_its_results_and_continues_them(
    tree: Path, reach: Reach, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    first = mutations.run(tree, reach=reach, out=out, listed=[BOUNDARY], at_once=1)

    second = mutations.run(tree, reach=reach, out=out, listed=[UNSEEN, BOUNDARY], at_once=1)

    assert [trial.outcome for trial in second] == ["unreached", "killed"]
    assert second[1].test == first[0].test
    assert mutations.read_trials(out)[0].mutation == UNSEEN
    assert "1 results are kept" in capsys.readouterr().err


def test_an_empty_coverage_file_is_refused(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--cov-context=test"):
        Reach(tmp_path / "none.coverage", tree, {})


def test_unit_tests_come_first() -> None:
    tests = ["tests/acceptance/a.py::b", "tests/integration/a.py::b", "elsewhere.py::a", "tests/unit/a.py::b"]

    assert [tier_of(test) for test in tests] == [2, 1, 3, 0]


# --- comparisons ---------------------------------------------------------------------------------------------------


def results(tmp_path: Path, name: str, *trials: Trial) -> str:
    path = tmp_path / name
    path.write_text(json.dumps({"results": [trial.as_json() for trial in trials]}))
    return str(path)


def test_a_comparison_names_what_is_not_killed_any_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killed = Trial(mutation=BOUNDARY, outcome="killed", test="tests/unit/test_code.py::test_limit")
    survived = Trial(mutation=LESS, outcome="survived")
    before = results(tmp_path, "before", killed, survived)
    more = results(tmp_path, "more", killed, replace(survived, outcome="killed", test="t"))
    less = results(tmp_path, "less", replace(killed, outcome="survived", test=None), survived)

    assert mutations.main(["compare", before, more]) == 0
    assert mutations.main(["compare", before, before]) == 0
    moved = replace(BOUNDARY, file=f"elsewhere/{BOUNDARY.file}", old=f"    {BOUNDARY.old}", new=f"    {BOUNDARY.new}")
    assert mutations.main(["compare", before, results(tmp_path, "moved", replace(killed, mutation=moved))]) == 0
    capsys.readouterr()
    assert mutations.main(["compare", before, less]) == 1
    printed = capsys.readouterr().out
    assert "survived, killed before by tests/unit/test_code.py::test_limit" in printed
    assert "return number <= LIMIT -> return number < LIMIT" in printed
    assert "while number" not in printed


@pytest.mark.parametrize("outcome", ["gone", "timeout", "unreached"])
def test_whatever_is_not_killed_is_a_difference(tmp_path: Path, outcome: str) -> None:
    killed = Trial(mutation=BOUNDARY, outcome="killed", test="t")
    before = results(tmp_path, "before", killed)
    fields = json.loads(Path(before).read_text())["results"][0] | {"outcome": outcome}
    (tmp_path / "after").write_text(json.dumps({"results": [fields]}))

    assert mutations.main(["compare", before, str(tmp_path / "after")]) == 1
    assert mutations.main(["compare", before, results(tmp_path, "nothing")]) == 1


# --- figures of the tests ------------------------------------------------------------------------------------------

JUNIT: Final = """\
<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_x[1.5]" time="0.25"/>
<testcase classname="tests.unit.test_a.TestB" name="test_y" time="1.5"><skipped/></testcase>
<testcase classname="tests.integration.test_c" name="test_z" time="2"><failure/></testcase>
<testcase classname="tests.integration.test_c" name="test_z" time="1"><error/></testcase>
</testsuite></testsuites>
"""


@pytest.fixture
def junit(tmp_path: Path) -> Path:
    path = tmp_path / "junit.xml"
    path.write_text(JUNIT)
    return path


def test_seconds_are_read_by_the_ids_of_tests(junit: Path) -> None:
    assert seconds_of(junit) == {
        "tests/unit/test_a.py::test_x[1.5]": 0.25,
        "tests/unit/test_a.py::TestB::test_y": 1.5,
        "tests/integration/test_c.py::test_z": 3.0,
    }


def test_cases_and_seconds_are_summed_by_tier_and_by_file(junit: Path, tmp_path: Path) -> None:
    assert test_figures.main(["--junit", str(junit), "--out", str(tmp_path)]) == 0

    figures = json.loads((tmp_path / "tests.json").read_text())
    assert figures["all"] == {"cases": 3, "passed": 1, "failed": 2, "skipped": 1, "seconds": 4.75}
    assert figures["tiers"]["unit"] == {"cases": 2, "passed": 1, "failed": 0, "skipped": 1, "seconds": 1.75}
    assert figures["files"]["tests/integration/test_c.py"]["cases"] == 1
    lines = gzip.decompress((tmp_path / "tests.csv.gz").read_bytes()).decode().splitlines()
    assert lines[:2] == ["test,ending,seconds", "tests/unit/test_a.py::test_x[1.5],passed,0.250"]


def test_lines_and_branches_are_summed_by_package(tree: Path, tmp_path: Path) -> None:
    package = tree / "app" / "domain"
    package.mkdir()
    for folder in (tree / "app", package):
        (folder / "code.py").write_text("def f(a):\n    if a:\n        return 1\n    return 2\n")
    file = tmp_path / "some.coverage"
    data = Coverage(data_file=str(file), branch=True).get_data()
    data.add_arcs({str(package / "code.py"): [(-1, 1), (1, -1), (-1, 2), (2, 3), (3, -1)]})
    data.add_arcs({str(tree / "app" / "code.py"): [(-1, 1), (1, -1)]})
    data.write()

    test_figures.main(["--coverage", str(file), "--out", str(tmp_path)])

    half = {"lines": 4, "lines_run": 3, "branches": 2, "branches_taken": 1}
    figures = json.loads((tmp_path / "coverage.json").read_text())
    assert figures["packages"]["app.domain"] == half | {"lines_percent": 75.0, "branches_percent": 50.0}
    assert figures["packages"]["app"]["branches_taken"] == 0
    assert (figures["all"]["lines_run"], figures["all"]["branches"]) == (4, 4)


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/a/app/main.py", "app"),
        ("/app/tree/app/domain/gating/a.py", "app.domain"),
        ("worker/tasks.py", "worker"),
    ],
)
def test_a_file_belongs_to_a_package(file: str, package: str) -> None:
    assert test_figures.package_of(file) == package
