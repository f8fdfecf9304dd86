"""LangGraph: a graph of one node over ``MessagesState`` with ``AsyncPostgresSaver``.

A checkpoint stores the whole list of messages as one value, and every turn makes two new checkpoints: the stored data
grows with the square of the conversation. (``DeltaChannel``, which stores only additions, is in beta and optional.) It
sends the whole list; trimming and summarizing are middlewares that have to be added. A turn is one ``ainvoke``: it
loads the newest checkpoint, gives the node all messages with the user's, and stores the reply. A conversation is
filled by one update with all its messages, so that it has one checkpoint instead of those of all its turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import MessagesState, StateGraph

from bench.peers.children.protocol import SpokenMessage, database_url, serve


class LangGraph:
    """One compiled graph, whose node gives a prepared answer."""

    def __init__(self, saver: AsyncPostgresSaver) -> None:
        self._reply = ""
        self._seen: list[Any] = []
        builder = StateGraph(MessagesState)
        builder.add_node("answer", self._answer)
        builder.set_entry_point("answer")
        builder.set_finish_point("answer")
        self._graph = builder.compile(checkpointer=saver)

    async def _answer(self, state: MessagesState) -> dict[str, Any]:
        self._seen = state["messages"]
        return {"messages": [AIMessage(self._reply)]}

    async def fill(self, conversation: str, messages: Sequence[SpokenMessage]) -> None:
        """Fill the conversation with one checkpoint."""
        made = [HumanMessage(text) if role == "user" else AIMessage(text) for role, text in messages]
        await self._graph.aupdate_state(_config(conversation), {"messages": made}, as_node="answer")

    async def turn(self, conversation: str, user: str, assistant: str) -> Any:
        """Play a turn: the messages that the node got would be sent to a model."""
        self._reply = assistant
        await self._graph.ainvoke({"messages": [HumanMessage(user)]}, _config(conversation))
        return self._seen

    def prompt(self, sent: Any) -> list[SpokenMessage]:
        """The roles and texts of what would be sent."""
        return [(message.type, message.content) for message in sent]


def _config(conversation: str) -> Any:
    return {"configurable": {"thread_id": conversation}}


async def main() -> None:
    """Answer requests, with one database connection as the saver opens it."""
    async with AsyncPostgresSaver.from_conn_string(database_url("postgresql")) as saver:
        await saver.setup()
        await serve(LangGraph(saver), ("langgraph", "langgraph-checkpoint-postgres", "psycopg"))


if __name__ == "__main__":
    asyncio.run(main())
