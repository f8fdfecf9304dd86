"""Google's wire format: an answer as ``GenerateContentResponse`` JSON, whole or in chunks, with realistic usage."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from app.core.text.token_counts import estimate_text
from tests.gemini_faults import Answer

_CHUNKS: Final = 5
CACHED_TOKENS: Final = "scriptedCachedTokens"
"""A key in the request as the server handles it: how much of the prompt came from a cache."""


def pieces(given: Answer) -> list[list[dict[str, Any]]]:
    parts = parts_of(given)
    if not (given.text or given.thoughts):
        return [parts]
    calls = [part for part in parts if "functionCall" in part]
    thoughts = [[{"text": text, "thought": True}] for text in cut(given.thoughts)]
    return [*thoughts, *([{"text": text}] for text in cut(given.text)), *([part] for part in calls)]


def shows_thoughts(body: Mapping[str, Any]) -> bool:
    """Whether a request asks for the model's thoughts, which are sent to nobody else.

    Google reads a field in either of its two spellings.
    """
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    return bool(config.get("includeThoughts") or config.get("include_thoughts"))


def cut(text: str) -> list[str]:
    """The pieces in which a text is streamed."""
    size = max(1, math.ceil(len(text) / _CHUNKS))
    return [text[start : start + size] for start in range(0, len(text), size)]


def parts_of(given: Answer) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if given.thoughts:
        parts.append({"text": given.thoughts, "thought": True})
    if given.text:
        parts.append({"text": given.text})
    for number, call in enumerate(given.calls):
        signed = {"thoughtSignature": given.signature} if given.signature and not number else {}
        parts.append({"functionCall": dict(call), **signed})
    return parts


def chunk(
    given: Answer, model: str, body: Mapping[str, Any], parts: list[dict[str, Any]], *, last: bool
) -> dict[str, Any]:
    chunk: dict[str, Any] = {"modelVersion": model, "responseId": "scripted", "usageMetadata": _usage(given, body)}
    if given.blocked:
        return {**chunk, "promptFeedback": {"blockReason": given.blocked}}
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model"}}
    if parts:
        candidate["content"]["parts"] = parts
    if last and given.finish:
        candidate["finishReason"] = given.finish
    return {**chunk, "candidates": [candidate]}


def _usage(given: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    """Realistic numbers: a long prompt is partly cached, and thoughts are counted apart from the answer."""
    prompt, said, thought = prompt_tokens(body), estimate_text(given.text), estimate_text(given.thoughts)
    usage: dict[str, Any] = {
        "promptTokenCount": prompt,
        "totalTokenCount": prompt + said + thought,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
    }
    if said:
        usage["candidatesTokenCount"] = said
    if thought:
        usage["thoughtsTokenCount"] = thought
    cached = body.get(CACHED_TOKENS, prompt // 1_024 * 512)
    if cached > 0:
        usage["cachedContentTokenCount"] = cached
        usage["cacheTokensDetails"] = [{"modality": "TEXT", "tokenCount": cached}]
    return usage


def counted(body: Mapping[str, Any]) -> dict[str, Any]:
    tokens = prompt_tokens(body)
    return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}


def texts(body: Mapping[str, Any]) -> list[str]:
    contents = [body.get("systemInstruction", {}), *body.get("contents", [])]
    return [part["text"] for content in contents for part in content.get("parts", []) if "text" in part]


def prompt_tokens(body: Mapping[str, Any]) -> int:
    return sum(estimate_text(text) for text in [*texts(body), *tool_texts(body)])


def tool_texts(body: Mapping[str, Any]) -> list[str]:
    """The texts of tools in a prompt: declarations, calls, results."""
    parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    kinds = ("functionCall", "functionResponse")
    said = [json.dumps(part[kind], ensure_ascii=False) for part in parts for kind in kinds if kind in part]
    return [*said, *(json.dumps(tool, ensure_ascii=False) for tool in body.get("tools", []))]


def prompt_of(body: Mapping[str, Any], kind: str) -> str:
    """The text that the behaviour reads: the last user turn of a chat, the whole prompt of anything else."""
    if kind != "chat":
        return "\n".join(texts(body))
    users = [content for content in body.get("contents", []) if content.get("role") != "model"]
    return "\n".join(texts({"contents": users[-1:]}))


def encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()
