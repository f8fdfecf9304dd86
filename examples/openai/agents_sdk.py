"""The OpenAI Agents SDK, with tools and with its three ways to remember: ``pip install openai-agents``."""

from __future__ import annotations

import asyncio
import os

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from agents.memory import OpenAIConversationsSession, OpenAIResponsesCompactionSession, SQLiteSession
from openai import AsyncOpenAI

client = AsyncOpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)


@function_tool
def get_weather(place: str) -> str:
    """Tell the weather of a place."""
    return f"Sunny in {place}"


async def main() -> None:
    """Run an agent in each way."""
    set_tracing_disabled(True)
    model = OpenAIResponsesModel("throughline", openai_client=client)
    agent = Agent(name="Guide", instructions="Be brief.", model=model)
    helped = Agent(name="Weather", instructions="Be brief.", model=model, tools=[get_weather])

    print("tools:", (await Runner.run(helped, "What is the weather like?")).final_output)

    # The service keeps the conversation, and compacts it as it grows: only what is new is sent.
    conversation = await client.conversations.create()
    for question in ("My name is Ada.", "What is my name?"):
        answered = await Runner.run(agent, question, conversation_id=conversation.id)
    print("conversation_id:", answered.final_output)

    session = OpenAIConversationsSession(openai_client=client)
    for question in ("I like tea.", "What do I like?"):
        answered = await Runner.run(agent, question, session=session)
    print("conversations session:", answered.final_output, len(await session.get_items()))

    compacting = OpenAIResponsesCompactionSession(
        # This session takes only models whose names look like OpenAI's: gpt-throughline is the same as throughline.
        session_id="trip",
        underlying_session=SQLiteSession("trip"),
        client=client,
        model="gpt-throughline",
    )
    for question in ("I live in Oslo.", "Where do I live?"):
        answered = await Runner.run(agent, question, session=compacting)
    before = len(await compacting.get_items())
    await compacting.run_compaction({"force": True})
    after = await compacting.get_items()
    print("compaction session:", before, "items, then", [item.get("type", "message") for item in after])
    assert any(item.get("type") == "compaction" for item in after)
    print("gone on:", (await Runner.run(agent, "And now?", session=compacting)).final_output)

    streamed = Runner.run_streamed(agent, "Hello!")
    kinds = [event.type async for event in streamed.stream_events()]
    print("streamed:", streamed.final_output, len(kinds))


asyncio.run(main())
