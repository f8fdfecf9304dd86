"""What a model, or the road to it, can do wrong: behaviours of the scripted Gemini server by name.

A behaviour is JSON, ``{"name": …, …}`` or the bare name. Keys that every behaviour takes: ``times`` (default 1),
``delay`` (seconds before the first byte), ``hold`` (wait until ``POST /release``), ``hold_after`` (of a stream: wait
for it after so many chunks, thoughts counted; with ``one_by_one`` before each further chunk), ``pace`` (seconds between
chunks of a stream), ``block_if`` (a word in the prompt at which the provider blocks it), ``max_input_tokens`` (the real
window).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tests import gemini_honest
from tests.gemini_honest import dumps
from tests.unframing import unframe

Behaviour = Mapping[str, Any]
HANG: Final = 3_600.0

CONTINUED_CHAT: Final = "Sure! So, as I was saying, shall we go on with the next step? What would you like to do first?"
CONSIDERED: Final = "First I consider what the user wants. Then I consider it again."
PLEASE_PROVIDE: Final = "Please provide the conversation you would like me to summarize."
INVENTED: Final = "The user lives at 742 Evergreen Terrace in Springfield and owns 17 llamas."
FOREIGN: Final[Mapping[str, str]] = {
    "zh": "用户讨论了项目的要求，并决定在下一个阶段之前完成所有的准备工作。",
    "de": "Der Nutzer hat die Anforderungen besprochen und entschieden, dass alle Vorbereitungen bald fertig werden.",
    "ru": "Пользователь обсудил требования проекта и решил закончить всю подготовку до следующего этапа.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, as a behaviour sees it."""

    prompt: str
    schema: Mapping[str, Any] | None
    streamed: bool
    is_detail: bool = False
    """Whether a stretch is to be retold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer that goes over the wire."""

    text: str = ""
    finish: str | None = "STOP"
    thoughts: str = ""
    """The model's thoughts; they are sent only if the request asks for them."""
    calls: tuple[Mapping[str, Any], ...] = ()
    """Function calls in the form of the wire."""
    signature: str = ""
    """The signature of the first call, in Base64."""
    blocked: str | None = None
    status: int = 200
    error: Mapping[str, Any] | None = None
    raw: bytes | None = None
    reset: bool = False
    """How the connection is cut: before the first byte, or after half of a stream if there is text."""
    output_tokens: int | None = None


_BESIDE: Final = frozenset({"dropped", "anchors", "segments"})
"""The lists of a candidate that do not belong to the state."""

Maker = Callable[[Asked, Behaviour], Answer]


def answer(asked: Asked, behaviour: Behaviour) -> Answer:
    """Perform one behaviour. Raises ``KeyError`` for an unknown name."""
    if (word := behaviour.get("block_if")) and word in asked.prompt:
        return Answer(blocked="PROHIBITED_CONTENT")
    return BEHAVIOURS[behaviour["name"]](asked, behaviour)


def error(status: int, word: str, message: str, details: Sequence[Mapping[str, Any]] = ()) -> Answer:
    """An error body as Google writes it."""
    body: dict[str, Any] = {"code": status, "message": message, "status": word}
    if details:
        body["details"] = list(details)
    return Answer(status=status, error={"error": body})


def too_long(tokens: int, limit: int) -> Answer:
    """The answer to a prompt above the window."""
    message = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
    return error(400, "INVALID_ARGUMENT", message)


def _honest(asked: Asked, _: Behaviour) -> Answer:
    if asked.is_detail:
        return Answer(text=gemini_honest.detail(asked.prompt), thoughts="Let me read it all.")
    if asked.schema is None:
        return Answer(text=gemini_honest.reply(asked.prompt), thoughts="Let me see what was said.")
    return Answer(text=dumps(gemini_honest.candidate(asked.prompt, asked.schema)), thoughts="Let me read it all.")


def _written(asked: Asked) -> dict[str, Any]:
    return gemini_honest.candidate(asked.prompt, asked.schema or {})


def _lists(candidate: Mapping[str, Any]) -> list[str]:
    return [name for name, value in candidate.items() if isinstance(value, list) and name not in _BESIDE]


def _with_fact(asked: Asked, text: str) -> Answer:
    candidate, messages = _written(asked), unframe(asked.prompt)
    seqs = [messages[0].seq] if messages else []
    for name in _lists(candidate)[:1]:
        candidate[name] = [*candidate[name], {"text": text, "from": seqs, "replaces": []}]
    return Answer(text=dumps(candidate))


def _text(_: Asked, behaviour: Behaviour) -> Answer:
    return Answer(
        text=behaviour["text"], thoughts=behaviour.get("thoughts", ""), finish=behaviour.get("finish", "STOP")
    )


def _calls(_: Asked, behaviour: Behaviour) -> Answer:
    """``calls`` are ``[{name, args}]``, sent after ``text`` if there is any; the first is signed, as Gemini does."""
    return Answer(
        text=behaviour.get("text", ""),
        thoughts=behaviour.get("thoughts", ""),
        calls=tuple(behaviour["calls"]),
        signature=behaviour.get("signature", ""),
        finish=behaviour.get("finish", "STOP"),
    )


def _candidate(asked: Asked, behaviour: Behaviour) -> Answer:
    """Replace parts of the honest candidate, so that a test names only what it is about."""
    return Answer(text=dumps({**_written(asked), **behaviour["candidate"]}))


def _noting(**changes: Any) -> Maker:
    """An honest candidate whose notes about stretches are wrong in one way."""

    def made(asked: Asked, behaviour: Behaviour) -> Answer:
        candidate, changed = _written(asked), changes | dict(behaviour.get("note", {}))
        added = changed.pop("added", "")
        candidate["segments"] = [
            {**note, "brief": f"{note['brief']}{added}", **changed} for note in candidate.get("segments", [])
        ]
        return Answer(text=dumps(candidate))

    return made


def _without_notes(asked: Asked, _: Behaviour) -> Answer:
    return Answer(text=dumps({**_written(asked), "segments": []}))


def _skeleton(asked: Asked, _: Behaviour) -> Answer:
    written = _written(asked)
    return Answer(text=dumps({name: [] if isinstance(value, list) else "" for name, value in written.items()}))


def _larger(asked: Asked, _: Behaviour) -> Answer:
    candidate, messages = _written(asked), unframe(asked.prompt)
    for name in _lists(candidate)[:1]:
        candidate[name] = [{"text": m.content, "from": [m.seq], "replaces": []} for m in messages for _ in range(2)]
    return Answer(text=dumps(candidate))


def _foreign(asked: Asked, behaviour: Behaviour) -> Answer:
    text, candidate = FOREIGN[behaviour.get("language", "zh")], _written(asked)
    seqs = [message.seq for message in unframe(asked.prompt)[:1]]
    for name, value in candidate.items():
        candidate[name] = text if isinstance(value, str) else []
    for name in _lists(candidate)[:1]:
        candidate[name] = [{"text": text, "from": seqs, "replaces": []}]
    return Answer(text=dumps(candidate))


def _in_narrative(asked: Asked, text: str) -> dict[str, Any]:
    candidate = _written(asked)
    return {name: value + text if isinstance(value, str) else value for name, value in candidate.items()}


def _huge(asked: Asked, behaviour: Behaviour) -> Answer:
    return Answer(text=dumps(_in_narrative(asked, " and so on" * (int(behaviour.get("bytes", 5_000_000)) // 10))))


def _nested(_: Asked, behaviour: Behaviour) -> Answer:
    depth = int(behaviour.get("depth", 100_000))
    return Answer(text="[" * depth + "]" * depth)


def _missing_fields(asked: Asked, _: Behaviour) -> Answer:
    candidate = _written(asked)
    return Answer(text=dumps(dict(list(candidate.items())[:1])))


def _drops(asked: Asked, behaviour: Behaviour) -> Answer:
    dropped = [{"entry": entry, "reason": "no_longer_relevant", "by_seq": 0} for entry in behaviour.get("entries", [])]
    return Answer(text=dumps({**_written(asked), "dropped": dropped}))


def _forgets(asked: Asked, _: Behaviour) -> Answer:
    candidate = _written(asked)
    for name in _lists(candidate):
        candidate[name] = candidate[name][-1:]
    return Answer(text=dumps(candidate))


def _cut(asked: Asked, behaviour: Behaviour) -> Answer:
    text = _honest(asked, behaviour).text
    return Answer(text=text[: max(1, len(text) * 2 // 3)], finish="MAX_TOKENS")


def _finishing(finish: str) -> Maker:
    return lambda asked, behaviour: replace(_honest(asked, behaviour), finish=finish)


def _always(fixed: Answer) -> Maker:
    return lambda _asked, _behaviour: fixed


_RETRY_IN_14_S: Final = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "14s"}]
_BAD_KEY: Final = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
_RESET: Final = Answer(reset=True)

BEHAVIOURS: Final[Mapping[str, Maker]] = {
    "honest": _honest,
    "text": _text,
    "candidate": _candidate,
    # The connection.
    "hang": _honest,
    "reset": _always(_RESET),
    "reset_midway": lambda asked, behaviour: replace(_honest(asked, behaviour), reset=True),
    "error_400": _always(error(400, "INVALID_ARGUMENT", "Request contains an invalid argument.")),
    "error_401": _always(error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")),
    "error_404": _always(error(404, "NOT_FOUND", "models/nobody is not found for API version v1beta.")),
    "error_429": _always(error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", _RETRY_IN_14_S)),
    "error_500": _always(error(500, "INTERNAL", "An internal error has occurred.")),
    "error_503": _always(error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")),
    "bad_key": _always(error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", _BAD_KEY)),
    "too_long": _always(too_long(1_200_000, 1_048_576)),
    "garbled": _always(Answer(raw=b"<html>502 Bad Gateway</html>")),
    # No answer.
    "empty": _always(Answer()),
    "blank": _always(Answer(text=" \n\t \n")),
    "thoughts_only": _always(Answer(thoughts=CONSIDERED)),
    "safety_empty": _always(Answer(finish="SAFETY")),
    "blocked_prompt": _always(Answer(blocked="PROHIBITED_CONTENT")),
    # Another answer than the one that was asked for.
    "please_provide": _always(Answer(text=PLEASE_PROVIDE)),
    "continued_chat": _always(Answer(text=CONTINUED_CHAT)),
    "tool_call": _always(Answer(calls=({"name": "search_history", "args": {"query": "what was said"}},))),
    "calls": _calls,
    # An answer that broke off, or was taken back.
    "cut_parseable": _finishing("MAX_TOKENS"),
    "cut": _cut,
    "safety": _finishing("SAFETY"),
    "recitation": _finishing("RECITATION"),
    "unfinished": lambda asked, behaviour: replace(_honest(asked, behaviour), finish=None),
    # A candidate that is wrong.
    "skeleton": _skeleton,
    "larger": _larger,
    "foreign": _foreign,
    "nul": lambda asked, _: Answer(text=dumps(_in_narrative(asked, "\x00"))),
    "raw_nul": lambda asked, _: Answer(text=dumps(_in_narrative(asked, "\x00")).replace("\\u0000", "\x00")),
    "escaped_surrogate": lambda asked, _: Answer(text=dumps(_in_narrative(asked, "@@")).replace("@@", "\\ud800")),
    "surrogate": lambda asked, _: Answer(text=dumps(_in_narrative(asked, "\ud800"))),
    "huge": _huge,
    "nested": _nested,
    "invalid_json": _always(Answer(text='{"logos": [{"text": "a", "from": [1]')),
    "missing_fields": _missing_fields,
    "invented": lambda asked, behaviour: _with_fact(asked, behaviour.get("text", INVENTED)),
    "retold_inventing": lambda asked, behaviour: Answer(text=f"{_honest(asked, behaviour).text} {INVENTED}"),
    # Notes about stretches that are wrong.
    "digest_invented": _noting(added=f" {INVENTED}"),
    "digest_foreign": _noting(brief=FOREIGN["de"]),
    "digest_missing": _without_notes,
    "forgets": _forgets,
    "drops": _drops,
}
"""Name to behaviour. ``hang`` differs from ``honest`` in its delay only, which the server knows."""
