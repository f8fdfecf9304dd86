"""Runs the tools that the chat model calls: expand, search, and those of the operator. Each call gets a result.

A result that quotes earlier messages records which, so that an erasure of one of them also finds the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from app.core.context.tools import EXPAND_TOOL, OWN_TOOL_NAMES, SEARCH_TOOL, echoed_words, result_tokens, shortened_text
from app.core.context.turn_options import NO_OPTIONS, TurnOptions
from app.core.model.conversation import Message
from app.core.model.errors import DependencyUnavailableError, InvalidInputError
from app.core.model.model_io import Reasoning, ToolCall, ToolSpec
from app.core.model.records import Turn
from app.core.text.localization.catalogue import FALLBACK, Catalogue, catalogue_of
from app.usecases.chat.lookups import Lookups, ToolResult
from app.usecases.shared.shell import Shell

TIMEOUT: Final = 10.0
"""Seconds for one call."""

log = structlog.get_logger(__name__)


class Tool(Protocol):
    """A tool that the operator adds."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and parameters, as the model sees them."""

    async def run(self, arguments: Mapping[str, object]) -> str:
        """The result as text.

        Raises ``InvalidInputError`` for invalid arguments, and the model is told why. Of any other exception it is told
        the class only.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The turn in which tools are called, and the settings of it that the calls need."""

    turn: Turn
    message: Message
    """The user's message, even if the turn continues with results of the client's tools."""
    model: str | None = None
    """The chat model, if it is not the configured one."""
    locale: str = FALLBACK
    """The conversation's language, in which the model is told that a call failed."""
    options: TurnOptions = NO_OPTIONS
    """Instructions and tools that the client brings to this turn."""
    reasoning: Reasoning = "shown"
    """Whether the model's reasoning is dropped, shown, or also asked for."""


class Toolbox:
    """Runs the tool calls of a turn; ``further`` are the operator's tools."""

    def __init__(self, shell: Shell, *, lookups: Lookups, further: Sequence[Tool] = ()) -> None:
        self._shell = shell
        self._lookups = lookups
        self._further = {tool.spec.name: tool for tool in further}

    async def run(self, scope: Scope, call: ToolCall, *, calls: int = 1) -> ToolResult:
        """The result of a call. If the tool is unknown, fails or takes too long, the result is a text that says so.

        ``calls`` is the number of calls that the model made at once; their results share the tokens allowed for
        results.

        Raises:
            DependencyUnavailableError: The database is away: this ends the turn, and the model is told nothing.
        """
        catalogue = catalogue_of(scope.locale)
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._run(scope, call, calls, catalogue)
        except TimeoutError:
            log.warning("tool.timeout", tool=self._name_to_log(call.name))
            return ToolResult(text=catalogue.text("tools.timeout", count=TIMEOUT))
        except DependencyUnavailableError:
            raise
        except InvalidInputError as error:
            return ToolResult(text=catalogue.text("tools.refused", why=error.detail.rstrip(".")))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything; what it says may hold a secret
            log.warning("tool.failed", tool=self._name_to_log(call.name), error=type(error).__name__)
            return ToolResult(text=catalogue.text("tools.failed", why=type(error).__name__))

    def _name_to_log(self, name: str) -> str | None:
        # No text that a model wrote goes into the log.
        return name if name in OWN_TOOL_NAMES or name in self._further else None

    async def _run(self, scope: Scope, call: ToolCall, calls: int, catalogue: Catalogue) -> ToolResult:
        async with self._shell.uow(scope.turn.tenant_id) as uow:
            conversation = await uow.conversations.get(scope.turn.conversation_id)
        resolved = self._shell.resolver(conversation, model=scope.model)
        most = result_tokens(resolved.budgets, calls)
        if call.name == SEARCH_TOOL.name:
            found = await self._lookups.search(scope.turn, scope.message, call.arguments, most, catalogue.language)
            return replace(found, content_epoch=conversation.content_epoch)
        if call.name == EXPAND_TOOL.name:
            expanded = await self._lookups.expand(scope.turn, call.arguments, most, catalogue.language)
            return replace(expanded, content_epoch=conversation.content_epoch)
        if call.name in self._further:
            text = await self._further[call.name].run(call.arguments)
            return ToolResult(text=shortened_text(text, most, catalogue) or catalogue.text("tools.nothing"))
        offered = (*resolved.tools, *scope.options.offered)
        names = ", ".join(tool.name for tool in offered) or catalogue.text("tools.none")
        return ToolResult(text=catalogue.text("tools.no_tool", tool=echoed_words(call.name), tools=names))
