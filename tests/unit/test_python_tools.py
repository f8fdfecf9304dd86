"""Callables of the settings as tools: how they are offered, and which are refused at the start."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.core.model.errors import InvalidInputError
from app.devserver.errors import CannotStartError
from app.devserver.preflight import check_tools
from app.providers.python_tools import CallableTool, ToolSettingError, load_tools
from app.settings import Settings
from tests.corpus import assert_values, corpus, holds
from tests.integration import tool_samples

SAMPLES = tool_samples.__name__


def loaded(name: str) -> CallableTool:
    (tool,) = load_tools([f"{SAMPLES}:{name}"])
    return tool


def test_name_description_and_schema_come_from_the_function() -> None:
    spec = loaded("in_stock").spec

    assert (spec.name, spec.description) == ("in_stock", "How many of an item are in stock.")
    assert spec.parameters["type"] == "object"
    assert spec.parameters["required"] == ["item"]
    assert spec.parameters["properties"]["item"]["description"] == "What is asked about."
    assert spec.parameters["properties"]["size"]["enum"] == ["s", "m", "l"]
    assert spec.parameters["additionalProperties"] is False


async def test_the_tool_on_the_page_can_be_imported_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(# shop/stock\.py.*?)```", page, re.DOTALL)
    (tmp_path / "stock_of_the_page.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    (tool,) = load_tools(["stock_of_the_page:in_stock"])
    assert tool.spec.description == "How many of an item are in stock."
    assert json.loads(await tool.run({"item": "crates"})) == {"crates": 7}


async def test_results_are_text_and_everything_else_json() -> None:
    stock = await loaded("in_stock").run({"item": "crates", "size": "l"})

    assert json.loads(stock) == {"item": "crates", "size": "l", "count": 7}
    assert await loaded("order_status").run({"number": "41"}) == "Order 41 has left harbour 12."


async def test_arguments_that_do_not_fit_are_named_without_their_values() -> None:
    with pytest.raises(InvalidInputError) as caught:
        await loaded("in_stock").run({"item": "crates", "size": "hunter2", "more": "hunter2"})

    assert "size" in caught.value.detail
    assert "more" in caught.value.detail
    assert "hunter2" not in caught.value.detail


async def test_a_function_that_is_no_coroutine_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on, were_let = threading.Event(), threading.Event(), []

    def sleep(_: float) -> None:
        begun.set()
        were_let.append(goes_on.wait(30))

    monkeypatch.setattr(tool_samples, "time", SimpleNamespace(sleep=sleep))
    slow = asyncio.create_task(loaded("sleeps").run({}))
    while not begun.is_set():  # noqa: ASYNC110 - a thread's
        await asyncio.sleep(0.01)

    assert await loaded("order_status").run({"number": 1})
    goes_on.set()
    assert await slow == "late"
    assert were_let == [True]


async def test_what_it_raises_is_raised() -> None:
    with pytest.raises(RuntimeError):
        await loaded("leaks").run({"word": "a"})


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("name", ["ends", "ends_in_loop"])
async def test_what_would_end_the_process_ends_only_the_tool(name: str, kind: type[BaseException]) -> None:
    with pytest.raises(RuntimeError, match=kind.__name__):
        await loaded(name).run({"kind": kind.__name__})


async def test_a_coroutine_is_cancelled_with_its_caller() -> None:
    running = asyncio.create_task(loaded("waits").run({}))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_what_cannot_be_used_is_one_clear_line() -> None:
    def fault(reference: str) -> str:
        with pytest.raises(ToolSettingError) as caught:
            load_tools([reference])
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert_values(corpus("tool_faults"), fault, agrees=holds)


def test_a_name_stands_once() -> None:
    with pytest.raises(ToolSettingError, match="there is a tool named in_stock already"):
        load_tools([f"{SAMPLES}:in_stock"] * 2)


def test_the_start_says_what_to_correct() -> None:
    with pytest.raises(CannotStartError, match=r"no_such_module.*Correct THROUGHLINE_TOOLS\."):
        check_tools(["no_such_module:function"])
    check_tools([f"{SAMPLES}:in_stock"])


def test_settings_take_a_list_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THROUGHLINE_TOOLS", "shop.stock:in_stock, shop.orders:order_status")

    assert Settings(_env_file=None).tools == ("shop.stock:in_stock", "shop.orders:order_status")
