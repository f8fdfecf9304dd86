"""Further tools for the chat model: Python functions that the settings name as ``package.module:function``.

Name, description and JSON schema come from the function itself: its name, its docstring, its signature. A function that
is not a coroutine runs in a thread of its own, which is abandoned if it takes too long.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import inspect
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import to_json

from app.core.context.tools import ANSWER_TOOL_NAME, OWN_TOOL_NAMES
from app.core.model.errors import InvalidInputError
from app.core.model.model_io import ToolSpec
from app.core.text.patterns import compiled

MAX_THREADS: Final = 16
"""How many calls of ordinary functions may run at once. Others wait, and waiting counts towards their time."""
SLOT_SECONDS: Final = 10.0
"""How long a call waits for a thread. By then its caller has given up."""
MAX_DESCRIPTION_LENGTH: Final = 1_000  # characters: it is a part of every request

_FUNCTION_REFERENCE: Final = compiled(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
_TOOL_NAME: Final = compiled(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_PASSED_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ToolSettingError(ValueError):
    """A tool of the settings cannot be used; the message is one line and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableTool:
    """A function as a tool."""

    spec: ToolSpec
    function: Callable[..., Any]
    arguments: type[BaseModel]
    slots: threading.Semaphore

    async def run(self, arguments: Mapping[str, object]) -> str:
        """Call the function.

        Raises ``InvalidInputError`` for invalid arguments, and everything that the function raises.
        """
        try:
            given = self.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            raise InvalidInputError(_argument_errors(error)) from None
        values = {name: getattr(given, name) for name in self.arguments.model_fields}
        if inspect.iscoroutinefunction(self.function):
            return _result_text(await _awaited(self.function(**values)))
        return _result_text(await _in_thread(lambda: self.function(**values), self.slots))


def load_tools(references: Sequence[str]) -> tuple[CallableTool, ...]:
    """The tools with these names, in order. Raises ``ToolSettingError``."""
    slots = threading.Semaphore(MAX_THREADS)
    tools: list[CallableTool] = []
    for reference in references:
        tool = _tool(reference, slots)
        _check_tool_name(reference, tool.spec.name, {one.spec.name for one in tools})
        tools.append(tool)
    return tuple(tools)


def _tool(reference: str, slots: threading.Semaphore) -> CallableTool:
    function = _imported_function(reference)
    try:
        arguments = _arguments(function)
        schema = {key: value for key, value in arguments.model_json_schema().items() if key != "title"}
    except ToolSettingError as error:
        raise ToolSettingError(f"The tool {reference} cannot be used: {error}") from None
    except Exception as error:
        raise ToolSettingError(
            f"The tool {reference} cannot be used: no JSON schema follows from its signature ({type(error).__name__})"
        ) from error
    description = inspect.cleandoc(function.__doc__ or "")[:MAX_DESCRIPTION_LENGTH]
    spec = ToolSpec(name=function.__name__, description=description, parameters=schema)
    return CallableTool(spec=spec, function=function, arguments=arguments, slots=slots)


def _imported_function(reference: str) -> Callable[..., Any]:
    if not _FUNCTION_REFERENCE.fullmatch(reference):
        raise ToolSettingError(f"The tool {reference!r} is not named as package.module:function")
    module, _, name = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except AttributeError as error:
        raise ToolSettingError(f"The tool {reference} cannot be imported: {module} has no {name}") from error
    except Exception as error:  # importing runs the module, which may fail in any way
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ToolSettingError(f"The tool {reference} cannot be imported ({why})") from error
    if not inspect.isfunction(found):
        raise ToolSettingError(f"The tool {reference} is not a function")
    return found


def _arguments(function: Callable[..., Any]) -> type[BaseModel]:
    """A pydantic model of the parameters. Arguments that it refuses never reach the function."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in _PASSED_BY_NAME:
            raise ToolSettingError(f"its parameter {name} cannot be given by name")
        if name not in hints:
            raise ToolSettingError(f"its parameter {name} has no annotation")
        if name.startswith("_"):
            raise ToolSettingError(f"its parameter {name} begins with an underscore")
        fields[name] = (hints[name], ... if parameter.default is parameter.empty else parameter.default)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, protected_namespaces=())
    return create_model(function.__name__, __config__=config, **fields)


def _check_tool_name(reference: str, name: str, taken: Collection[str]) -> None:
    if not _TOOL_NAME.fullmatch(name):
        raise ToolSettingError(f"The tool {reference} cannot be used: providers take no such name as {name!r}")
    if name in OWN_TOOL_NAMES or name == ANSWER_TOOL_NAME or name in taken:
        raise ToolSettingError(f"The tool {reference} cannot be used: there is a tool named {name} already")


def _argument_errors(error: ValidationError) -> str:
    each = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in each[:5])


async def _awaited(work: Awaitable[Any]) -> Any:
    """The result of a coroutine. What would end the process, or its caller, ends only the tool."""
    try:
        return await work
    except SystemExit as error:
        raise RuntimeError(type(error).__name__) from None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError(type(error).__name__) from None


async def _in_thread(work: Callable[[], Any], slots: threading.Semaphore) -> Any:
    """Run the work in a daemon thread.

    If it hangs, it delays neither the service's own threads nor the end of the process.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(result)

    def run() -> None:
        if not slots.acquire(timeout=SLOT_SECONDS):
            return  # the caller has already given up
        try:
            result, failed = (None, None) if done.cancelled() else _outcome(context, work)
        finally:
            slots.release()
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="tool", daemon=True).start()
    return await done


def _outcome(context: contextvars.Context, work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return context.run(work), None
    except StopIteration as error:
        # A future cannot carry this error.
        return None, RuntimeError(type(error).__name__)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the caller must hear of it
        return None, error
    except BaseException as error:  # noqa: BLE001 - ``sys.exit`` in a tool ends the tool
        return None, RuntimeError(type(error).__name__)


def _result_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return to_json(value, fallback=str, inf_nan_mode="strings").decode()
