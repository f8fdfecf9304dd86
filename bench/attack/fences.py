"""Checks what must hold of a context's structure, whoever wrote its texts: pure code, separate from the escaping.

Whether a model obeys an injected text is not measured. It is checked that each text is in its place: in the role of the
one who said it, or inside an element of the service that says whose it is; and that every element that bears a name of
the service's elements was written by the service.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Role = Literal["system", "user", "assistant", "tool"]
Json = Mapping[str, Any]

NAMES: Final = ("session_state", "anchors", "digests", "days", "left_out", "recalled", "passage", "message")
_OURS: Final = re.compile(rf"^</?({'|'.join(NAMES)})(?: [a-z]+=\"[^\"<>\n]*\")*>$", re.MULTILINE)
"""The tag of an element as the service writes it: on a line of its own."""
_INSIDE: Final[Mapping[str, frozenset[str]]] = {
    "anchors": frozenset({"session_state"}),
    "digests": frozenset({"session_state"}),
    "days": frozenset({"session_state"}),
    "left_out": frozenset({"session_state", ""}),
    "session_state": frozenset({""}),
    "recalled": frozenset({""}),
    "passage": frozenset({""}),
    "message": frozenset({"recalled"}),
}
"""The elements in which each element may be; ``""`` is outside of all elements."""
_ROLES: Final[Mapping[str, frozenset[Role]]] = {
    "session_state": frozenset({"user"}),
    "passage": frozenset({"user"}),
    "recalled": frozenset({"user", "tool"}),
}
_LOOKALIKES: Final = str.maketrans(
    {"а": "a", "е": "e", "о": "o", "ѕ": "s", "і": "i", "с": "c", "р": "p", "ɡ": "g", "ӏ": "l", "ⅼ": "l"}
)
_SHORT: Final = "|".join(name.replace("_", "") for name in NAMES if name != "message")
_ANY: Final = re.compile(
    rf"[<‹〈⟨](?:[\s/_\\-]*)(?:(?:{_SHORT})(?![a-z])|message(?=[\s/_\\-]*(?:role|of|part|seq)[\s_]*=))"
)
"""Anything that may be read as a tag of the service. ``message`` is a common word: it counts only with an attribute."""
_MARKER: Final = re.compile(r"[→⟶➔➜⇒]\s*l\d\s*:")
_SPEAKERS: Final[Mapping[str, str]] = {"A: ": "assistant", "U: ": "user"}
"""The marks with which lines of recalled messages begin, and the roles that they mean."""
_OWN_MARKER: Final = re.compile(r"→L3:anchors\]")
"""The only marker of the service outside of digests: it refers to anchors that did not fit."""
_ELEMENT_ROLES: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"system", "user"}),
    "named": frozenset({"assistant", "tool"}),
}
"""The roles in which a text may appear. A tool's name is the assistant's in a call and the tool's in a result. A system
message in the middle of a talk becomes a user's if the provider has no such role there: it gets less authority."""
CANARY: Final = re.compile(r"Qn\d{4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """A text with its role, as a model gets it."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is expected of a context."""

    roles: Mapping[str, Role | Literal["passage", "nowhere", "state", "named"]]
    """Whose text each canary is in."""
    states: int
    passages: int


def faults(speeches: Sequence[Speech], expected: Expected) -> list[str]:
    """What does not hold, in words; empty if everything holds."""
    found: list[str] = []
    elements: Counter[str] = Counter()
    for speech in speeches:
        if speech.role == "system":
            continue
        found += _faults_of(speech, expected, elements)
    if elements["session_state"] != expected.states:
        found.append(f"{elements['session_state']} state blocks, not {expected.states}")
    if elements["passage"] != expected.passages:
        found.append(f"{elements['passage']} passages, not {expected.passages}")
    if elements["recalled"] > 2:
        found.append(f"{elements['recalled']} recalled elements")
    for speech in (one for one in speeches if one.role == "system"):
        for canary in CANARY.findall(speech.text):
            if expected.roles.get(canary) != "system":
                found.append(f"{canary} of {expected.roles.get(canary)} stands among the system's words")
    return found


def _faults_of(speech: Speech, expected: Expected, elements: Counter[str]) -> Iterator[str]:
    stack: list[str] = []
    start = 0
    for element in (*_OURS.finditer(speech.text), None):
        if element and element.group() == "</message>" and not stack:
            continue  # a common word too: it counts only if one is open
        end = element.start() if element else len(speech.text)
        yield from _faults_between(speech.text[start:end], speech.role, tuple(stack), expected)
        if element is None:
            break
        start, name = element.end(), element[1]
        if element.group().startswith("</"):
            if not stack or stack.pop() != name:
                yield f"</{name}> closes nothing"
            continue
        elements[name] += 1
        if (stack[-1] if stack else "") not in _INSIDE[name]:
            yield f"<{name}> inside {stack or 'nothing'}"
        if speech.role not in _ROLES.get(name, {speech.role}):
            yield f"<{name}> said by {speech.role}"
        stack.append(name)
    if stack:
        yield f"{stack} without an end"


def _faults_between(text: str, role: Role, stack: tuple[str, ...], expected: Expected) -> Iterator[str]:
    """The faults of the text between two tags."""
    plain = skeleton(_OWN_MARKER.sub("]", text) if stack[-1:] == ("anchors",) else text)
    if forged := _ANY.search(plain):
        yield f"a forged element in {stack or role}: {plain[forged.start() : forged.end() + 60]!r}"
    if "digests" not in stack and (marker := _MARKER.search(plain)):
        yield f"a forged marker in {stack or role}: {plain[marker.start() : marker.end() + 40]!r}"
    if stack == ("session_state",) and text.strip() and not _is_state(text):
        yield f"the state is no JSON: {text[:80]!r}"
    for line in text.split("\n"):
        for canary in CANARY.findall(line):
            yield from _misplaced(canary, line, role, stack, expected)


def _misplaced(canary: str, line: str, role: Role, stack: tuple[str, ...], expected: Expected) -> Iterator[str]:
    whose = expected.roles.get(canary, "nowhere")
    if whose == "nowhere":
        yield f"{canary} is to be nowhere, and stands in {stack or role}"
    elif whose == "passage":
        if stack != ("passage",):
            yield f"{canary} of a passage stands in {stack or role}"
    elif not stack and role not in _ELEMENT_ROLES.get(whose, {whose}):
        yield f"{canary} of {whose} stands in the words of {role}"
    elif stack == ("recalled",) and _SPEAKERS.get(line[:3], whose) != whose:
        yield f"{canary} of {whose} is recalled as said by {line[:1]}"


def _is_state(text: str) -> bool:
    """Whether the text is a line of JSON, or lines around elements."""
    lines = [line for line in text.strip().split("\n") if line]
    try:
        return all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def skeleton(text: str) -> str:
    """The text as a reader may see it: without invisible characters, with letters and brackets in their common form."""
    shown = unicodedata.normalize("NFKC", text).translate(_LOOKALIKES).casefold()
    return "".join(one for one in shown if unicodedata.category(one) not in {"Cf", "Mn", "Me", "Cn", "Co"}).replace(
        "_", ""
    )


# Speeches from the requests of each provider.


def speeches_of(format_: str, system: Any, messages: Sequence[Json]) -> list[Speech]:
    """The speeches of a context in one of the formats of ``…/context``, or of a request as it was sent."""
    found = [Speech(role="system", text=text) for text in _texts(system)]
    for message in messages:
        found += _speeches(format_, message)
    return found


def _speeches(format_: str, message: Json) -> Iterator[Speech]:
    role: Role = {"model": "assistant", "developer": "system"}.get(str(message.get("role")), message.get("role"))  # type: ignore[assignment]
    if message.get("type") == "function_call":
        yield from _call(message, "arguments")
        return
    if message.get("type") == "function_call_output":
        yield from (Speech(role="tool", text=text) for text in _texts(message.get("output")))
        return
    content = message.get("content")
    if isinstance(content, str) and content:
        yield Speech(role=role, text=content)
    blocks = [*(content if isinstance(content, list) else ()), *message.get("parts", ())]
    for block in blocks:
        yield from _block(block, role)
    for call in message.get("tool_calls") or ():
        yield from _call(call["function"], "arguments")
    if format_ not in {"plain", "openai", "gemini", "anthropic", "responses"}:
        raise ValueError(format_)


def _block(block: Json, role: Role) -> Iterator[Speech]:
    if isinstance(block.get("text"), str):
        yield Speech(role=role, text=block["text"])
    for call in ("functionCall", "function_call"):
        if call in block:
            yield from _call(block[call], "args")
    for result in ("functionResponse", "function_response"):
        if result in block:
            yield from (Speech(role="tool", text=text) for text in _texts(block[result].get("response")))
    if block.get("type") in {"tool_use", "tool_call"}:
        yield from _call(block, "input" if "input" in block else "arguments")
    if block.get("type") == "tool_result":
        yield from (Speech(role="tool", text=text) for text in _texts(block.get("content")))


def _call(call: Json, key: str) -> Iterator[Speech]:
    yield Speech(role="assistant", text=str(call.get("name", "")))
    yield Speech(role="assistant", text=_arguments(call.get(key)))


def _arguments(value: Any) -> str:
    """Every text in a call's arguments. JSON text is parsed first, since it can spell a bracket as an escape."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    return "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)
