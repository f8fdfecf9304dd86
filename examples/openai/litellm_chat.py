"""LiteLLM's chat: ``pip install litellm``."""

from __future__ import annotations

import os

import litellm

ADDRESS = os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1")
KEY = os.environ.get("OPENAI_API_KEY", "none")
HELLO = [{"role": "user", "content": "Hello!"}]

whole = litellm.completion(model="openai/throughline", api_base=ADDRESS, api_key=KEY, messages=HELLO)
print("chat:", whole.choices[0].message.content)
stream = litellm.completion(model="openai/throughline", api_base=ADDRESS, api_key=KEY, messages=HELLO, stream=True)
print("streamed:", "".join(chunk.choices[0].delta.content or "" for chunk in stream))
named = litellm.completion(
    model="openai/throughline",
    api_base=ADDRESS,
    api_key=KEY,
    messages=HELLO,
    extra_headers={"X-Conversation-Id": f"litellm-{os.getpid()}"},
)
print("named:", named.choices[0].message.content)
