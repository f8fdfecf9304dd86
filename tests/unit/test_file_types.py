"""Reading a file takes time in proportion to its bytes, however many packed objects it claims to hold."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import pytest

from app.core.text.file_types import pdf_pages
from tests.unit.timing import assert_linear_in

PAGES: Final = zlib.compress(b"/Type /Page /Type /Page")
OBJECTS: Final = {
    "packed": b"/ObjStm stream\n%b\nendstream " % PAGES,
    "no data": b"/ObjStm stream\nx\nendstream ",
    "no end": b"/ObjStm stream\nx",
    "no stream": b"/ObjStm ",
}


@pytest.mark.daily(1)
@pytest.mark.parametrize("name", OBJECTS)
def test_many_packed_objects_take_linear_time(name: str) -> None:
    def counting(size: int) -> Callable[[], object]:
        data = b"%PDF-1.7 " + OBJECTS[name] * (size // len(OBJECTS[name]))
        return lambda: pdf_pages(data)

    assert_linear_in(counting, 1_000_000)


def test_the_pages_of_all_packed_objects_count() -> None:
    assert pdf_pages(b"%PDF-1.7 " + OBJECTS["packed"] * 3) == 6
    assert pdf_pages(b"%PDF-1.7 " + OBJECTS["no data"] + OBJECTS["packed"]) == 2
    assert pdf_pages(b"%PDF-1.7 " + OBJECTS["packed"].removesuffix(b"endstream ")) == 2, (
        "also of a file that breaks off"
    )
