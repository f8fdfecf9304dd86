"""The official Python SDK: chat completions, responses that go on from one another, conversations, compaction.

``pip install openai``; the address and the key are OPENAI_BASE_URL and OPENAI_API_KEY, as everywhere.
"""

from __future__ import annotations

import os

from openai import NotFoundError, OpenAI

client = OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)

print("models:", ", ".join(model.id for model in client.models.list()))

# Stateless: nothing is looked up, nothing is stored.
completion = client.chat.completions.create(model="throughline", messages=[{"role": "user", "content": "Hello!"}])
print("chat:", completion.choices[0].message.content)

stream = client.chat.completions.create(
    model="throughline", messages=[{"role": "user", "content": "Hello again!"}], stream=True
)
print("streamed:", "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))

# A chain of responses is a conversation; going on from an earlier one forks it.
first = client.responses.create(model="throughline", input="My name is Ada.")
second = client.responses.create(model="throughline", input="What is my name?", previous_response_id=first.id)
fork = client.responses.create(model="throughline", input="Spell it.", previous_response_id=first.id)
print("chain:", second.output_text, "| fork:", fork.output_text)
assert second.conversation == first.conversation != fork.conversation
assert client.responses.retrieve(second.id).output_text == second.output_text

# A conversation by its id: only what is new is sent, however long it grows.
conversation = client.conversations.create(metadata={"topic": "tea"})
with client.responses.stream(model="throughline", input="I like tea.", conversation=conversation.id) as events:
    kinds = [event.type for event in events]
print("events:", kinds[0], "…", kinds[-1])
items = client.conversations.items.list(conversation.id, order="asc")
print("items:", [item.type for item in items])

compacted = client.responses.compact(model="throughline", previous_response_id=second.id)
print("compacted:", compacted.output[-1].type)

client.responses.delete(second.id)
try:
    client.responses.retrieve(second.id)
except NotFoundError as error:
    print("deleted:", error.code)
client.conversations.delete(conversation.id)
