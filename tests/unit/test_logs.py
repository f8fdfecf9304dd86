"""Plain text of tools: listings and logs are told by their exact values, prose as it is."""

from __future__ import annotations

import pytest

from app.core.reading.logs import is_log, log_lines, values_in
from app.core.reading.tool_data_lines import DataLine

FAILING = """shop/cart/service.py:24: in total_rows
    assert total_rows([]) == 0
FAILED tests/cart/test_service.py::test_total_rows - KeyError
The rates are read from the settings once a day.
ed0e9da Move the service"""


def test_a_listing_is_a_log_and_prose_or_one_line_is_not() -> None:
    assert is_log(FAILING)
    assert not is_log("Order W123 was cancelled.")
    assert not is_log("It was sent on Monday to you.\nIt will come by post soon enough.\nThe bill is in the box too.")


def test_exact_values_are_kept_once_and_prose_between_them() -> None:
    told = list(log_lines(FAILING))
    values = [value for one in told if isinstance(one, DataLine) for value in one.codes]

    assert "The rates are read from the settings once a day." in told
    assert {"shop/cart/service.py:24", "tests/cart/test_service.py", "ed0e9da", "total_rows"} <= set(values)
    assert len(values) == len(set(values))


def test_a_place_in_a_file_is_its_file_and_its_line() -> None:
    assert list(values_in("app/a.py:12:4 x")) == ["app/a.py:12"]
    assert list(values_in("2025-03-13T11:00-12:00")) == ["2025-03-13T11:00-12:00"]
    assert list(values_in("see https://a.example/b?c=1:2 now")) == ["https://a.example/b?c=1:2"]


def test_items_of_a_list_are_records_with_their_words() -> None:
    listing = (
        "- [evt_3c62] 2025-03-14T15:00-16:00 Planning: Hiring plan (Maple) with a.b@norvik.example\n"
        "- [evt_8c7f] 2025-03-21T10:00-11:00 Sync: Offsite (Cedar) with a.b@norvik.example\n"
        "- nothing else\n"
    )
    told = [one.text for one in log_lines(listing) if isinstance(one, DataLine)]

    assert [text.partition(",")[0] for text in told] == ["evt_3c62", "evt_8c7f"]
    assert "Hiring plan, Maple" in told[0]
    assert "Cedar" in told[1]
    assert "Maple" not in told[1]


def test_what_is_defined_in_a_listed_source_stands_with_its_line() -> None:
    source = (
        "  12      def round_rows(self, rows):\n  13          if not rows:\n  14              return read_rates(rows)\n"
    )
    told = [value for one in log_lines(source) if isinstance(one, DataLine) for value in one.codes]

    assert "round_rows:12" in told
    assert "read_rates" in told


def test_words_that_only_open_a_line_or_hold_it_together_are_no_values() -> None:
    log = "ed0e9da Sum rates\n1f22bc7 Move it to Lyon\nstrict=None\n- [evt_1] (Maple) with a.b@norvik.example\n"
    told = [line.text for line in log_lines(log) if isinstance(line, DataLine)]

    assert told == ["ed0e9da, 1f22bc7, Lyon", "evt_1, Maple, a.b@norvik.example"]


@pytest.mark.parametrize(
    "value", ["a" + "_a" * 60 + "@", "x" + "_" * 60 + "#", "a@b" + ".c" * 150 + "@", "aB" * 150 + "@"]
)
def test_no_word_of_a_tool_is_read_for_ever(value: str) -> None:
    """Reading must end: when a run was tried in every division, each underscore doubled the time."""
    told = [line.text for line in log_lines(f"total 3\n{value}\nfile src/two.py\n") if isinstance(line, DataLine)]
    assert told == ["src/two.py"]
