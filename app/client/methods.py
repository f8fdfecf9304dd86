"""The endpoints as methods of both clients: each is written once and typed for both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from . import endpoints
from .calls import Call, ListCall
from .retrying import Retrying
from .sse import Stream

if TYPE_CHECKING:
    from .asynchronous import AsyncThroughline
    from .synchronous import Throughline

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


class Method(Generic[P, T]):
    """An endpoint with one answer."""

    def __init__(self, describe: Callable[P, Call[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: Throughline, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncThroughline, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Method[P, T]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        """The method of a client."""
        return self if client is None else _acting_method(self._describe, client.send)


class Each(Generic[P, Item]):
    """An endpoint with a list."""

    def __init__(self, describe: Callable[P, ListCall[Item]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: Throughline, owner: type) -> Callable[P, Generator[Item, None, None]]: ...
    @overload
    def __get__(self, client: AsyncThroughline, owner: type) -> Callable[P, AsyncGenerator[Item, None]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Each[P, Item]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        """The method of a client."""
        return self if client is None else _acting_method(self._describe, client.each)


class Follow(Generic[P, Item]):
    """An endpoint with a stream."""

    def __init__(self, describe: Callable[P, Callable[[Retrying], Stream[Item]]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: Throughline, owner: type) -> Callable[P, Generator[Item, None, None]]: ...
    @overload
    def __get__(self, client: AsyncThroughline, owner: type) -> Callable[P, AsyncGenerator[Item, None]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Follow[P, Item]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        """The method of a client."""
        return self if client is None else _acting_method(self._describe, client.follow)


def _acting_method(describe: Callable[..., Any], act: Callable[[Any], Any]) -> Callable[..., Any]:
    return update_wrapper(lambda *args, **kwargs: act(describe(*args, **kwargs)), describe)


class Methods:
    """Every endpoint of the API."""

    create_conversation = Method(endpoints.create_conversation)
    conversation = Method(endpoints.conversation)
    conversations = Each(endpoints.conversations)
    change_conversation = Method(endpoints.change_conversation)
    delete_conversation = Method(endpoints.delete_conversation)

    append = Method(endpoints.append)
    append_many = Method(endpoints.append_many)
    messages = Each(endpoints.messages)
    erase_message = Method(endpoints.erase_message)
    pin_message = Method(endpoints.pin_message)
    unpin_message = Method(endpoints.unpin_message)
    search = Each(endpoints.search)

    attach_file = Method(endpoints.attach_file)
    files = Each(endpoints.files)
    file = Method(endpoints.file)
    file_content = Method(endpoints.file_content)
    remove_file = Method(endpoints.remove_file)

    chat = Method(endpoints.chat)
    chat_stream = Follow(endpoints.chat_stream)
    follow_turn = Follow(endpoints.follow_turn)
    regenerate = Method(endpoints.regenerate)
    regenerate_stream = Follow(endpoints.regenerate_stream)
    interrupt = Method(endpoints.interrupt)
    events = Follow(endpoints.events)

    compact = Method(endpoints.compact)
    compactions = Each(endpoints.compactions)
    continuity = Each(endpoints.continuity)
    verifications = Each(endpoints.verifications)
    compaction = Method(endpoints.compaction)
    all_compactions = Each(endpoints.all_compactions)
    retry_compaction = Method(endpoints.retry_compaction)
    release = Method(endpoints.release)
    examine = Method(endpoints.examine)
    states = Each(endpoints.states)
    compare_states = Method(endpoints.compare_states)
    restore = Method(endpoints.restore)

    look_at_context = Method(endpoints.look_at_context)
    context = Method(endpoints.context)
    usage = Method(endpoints.usage)
    segments = Each(endpoints.segments)
    segment = Method(endpoints.segment)
    make_level = Method(endpoints.make_level)
    anchors = Each(endpoints.anchors)
    set_anchor_status = Method(endpoints.set_anchor_status)

    stats = Method(endpoints.stats)
    export = Method(endpoints.export)
    export_markdown = Method(endpoints.export_markdown)
    presets = Method(endpoints.presets)
    count_tokens = Method(endpoints.count_tokens)
    limits = Method(endpoints.limits)
    audit = Each(endpoints.audit)
    erase_user = Method(endpoints.erase_user)
    health = Method(endpoints.health)
    readiness = Method(endpoints.readiness)
