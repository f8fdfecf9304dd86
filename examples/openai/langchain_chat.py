"""LangChain, over chat completions and over responses: ``pip install langchain-openai``.

By a header the conversation has a name: then LangChain may go on sending everything, and the model is sent what fits.
"""

from __future__ import annotations

import os

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

ADDRESS = os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1")
KEY = SecretStr(os.environ.get("OPENAI_API_KEY", "none"))


@tool
def get_weather(place: str) -> str:
    """Tell the weather of a place."""
    return f"Sunny in {place}"


chat = ChatOpenAI(
    model="throughline",
    base_url=ADDRESS,
    api_key=KEY,
    default_headers={"X-Conversation-Id": f"langchain-{os.getpid()}"},
)
history: list[SystemMessage | HumanMessage | AIMessage] = [SystemMessage("Be brief."), HumanMessage("Hello!")]
for question in ("And now?", "Anything else?"):
    reply = chat.invoke(history)
    print("chat:", reply.text)
    history += [AIMessage(reply.text), HumanMessage(question)]

responses = ChatOpenAI(
    model="throughline", base_url=ADDRESS, api_key=KEY, use_responses_api=True, use_previous_response_id=True
)
first = responses.invoke("My name is Ada.")
second = responses.invoke([HumanMessage("My name is Ada."), first, HumanMessage("What is my name?")])
print("responses:", second.text)

for model in (chat, responses):
    # "any": one of them has to be called, so that this shows something with the offline model too.
    called = model.bind_tools([get_weather], tool_choice="any").invoke("What is the weather like?")
    print("calls:", [call["name"] for call in called.tool_calls])
    assert called.tool_calls
print("streamed:", "".join(chunk.text for chunk in responses.stream("Hello!")))
