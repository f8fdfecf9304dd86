"""Clients that do not give up while a campaign lasts, and record the answers that they get."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import httpx

from bench.chaos.cluster import Front
from bench.chaos.doors import OVERTAKEN, Asked, BrokenError, Door, RefusedError, check
from bench.chaos.log import Answer, Compacted, Erased, Json, Log, Read, Restored, SentMessage, Shown
from tests.acceptance.chaos import FaithfulFollower
from tests.acceptance.talk import Talk, small_talk

RETRY_SECONDS: Final = 0.3
PAUSE: Final = (0.1, 0.5)
"""The least and the most seconds between two messages of a client."""
REPEATED: Final = 0.15
"""The share of requests that are sent again after they were acknowledged."""
PAGE: Final = 100
NO_SUMMARY: Final = frozenset({"summarizer_failed", "empty_summary"})
"""Problems after which a client gives up a compaction: the model failed. After a conflict it tries again."""


class Campaign:
    """What all clients share: when they end, the clock, the log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.ending = threading.Event()
        """Set when clients must not begin anything new."""
        self.over = threading.Event()
        """Set when clients must not wait for answers any more."""
        self._began = time.monotonic()

    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def begin(self) -> None:
        """Start the campaign's clock."""
        self._began = time.monotonic()


class Client(threading.Thread):
    """One client in a thread of its own."""

    def __init__(self, name: str, campaign: Campaign, front: Front, seed: str) -> None:
        super().__init__(name=name, daemon=True)
        self._campaign = campaign
        self._front = front
        self._drawn = random.Random(seed)
        self._http = front.client()

    def run(self) -> None:
        """Act until the end; an error in the client itself is recorded as a defect."""
        try:
            while not self._campaign.ending.is_set():
                self.act()
                self._campaign.ending.wait(self._drawn.uniform(*PAUSE))
        except Exception as error:  # noqa: BLE001 - it is told in the report
            self._campaign.log.defect(f"{self.name} ended: {error!r}")
        finally:
            self._http.close()

    def act(self) -> None:
        """Do one thing."""
        raise NotImplementedError

    def turn_away(self) -> None:
        """Try the next API."""
        self._http.close()
        self._http = self._front.client()

    def persist(self, work: Callable[[], Any], conversation: str, final: frozenset[str] = frozenset()) -> Any:
        """Try the work until it succeeds; return its result, or ``None`` if the time was over before.

        Args:
            work: Makes one try.
            conversation: The conversation concerned; it is released if it was quarantined.
            final: Codes of refusals that are raised instead of being tried again.

        Raises:
            RefusedError: The service refused for good.
        """
        while not self._campaign.over.is_set():
            try:
                return work()
            except (BrokenError, httpx.TransportError, httpx.StreamError):
                self.turn_away()
            except RefusedError as refused:
                if refused.code == "conversation_set_aside":
                    self._release(conversation)
                elif refused.code in final or not refused.retryable:
                    raise
            self._campaign.over.wait(RETRY_SECONDS)
        return None

    def _release(self, conversation: str) -> None:
        """Release the conversation as an operator would whose processes were ended by somebody else."""
        try:
            self._http.post(f"/conversations/{conversation}/release", json={})
        except httpx.TransportError:
            self.turn_away()


class Writer(Client):
    """Sends one message after the other through one door; each is sent under its key until it is acknowledged."""

    def __init__(
        self, name: str, door_name: str, door: Door, talk: Talk, campaign: Campaign, front: Front, seed: str
    ) -> None:
        super().__init__(name, campaign, front, seed)
        self._door_name, self._door, self._talk = door_name, door, talk
        self._number = 0
        self._texts = small_talk(self._drawn.randrange(1, 1_000_000))

    def act(self) -> None:
        """Send the next message; now and then send it again afterwards."""
        self._number += 1
        question = next(self._texts)[0][1]
        log = self._campaign.log
        sent = SentMessage(
            client=self.name,
            door=self._door_name,
            conversation=self._talk.id,
            content=f"{question} ({self.name}, {self._number})",
            asked_at=self._campaign.now(),
        )
        log.said.append(sent)
        if self._send(sent):
            sent.answered_at = self._campaign.now()
            if self._drawn.random() < REPEATED:
                self._send(sent)

    def _send(self, sent: SentMessage) -> bool:
        try:
            answer: Answer | None = self.persist(lambda: self._try(sent), sent.conversation)
        except RefusedError as refused:
            if sent.answered_at is not None:
                self._campaign.log.defect(f"{sent.door}: what was acknowledged was refused when sent again: {refused}")
            elif refused.code != OVERTAKEN:
                self._campaign.log.defect(f"{sent.door}: a message was refused: {refused}")
            sent.refused = refused.code
            return False
        if answer is None:
            return False
        sent.answers.append(answer)
        return True

    def _try(self, sent: SentMessage) -> Answer:
        asked = Asked(content=sent.content, key=f"{self.name}-{self._number}", tries=sent.tries)
        sent.tries += 1
        return self._door(Talk(self._front, self._http, {"id": self._talk.id}), asked)


class Keeper(Client):
    """Compacts, restores, erases and reads."""

    def __init__(
        self,
        name: str,
        talks: list[Talk],
        followers: list[FaithfulFollower],
        campaign: Campaign,
        front: Front,
        seed: str,
    ) -> None:
        super().__init__(name, campaign, front, seed)
        self._talks, self._followers = talks, followers
        self._number = 0

    def act(self) -> None:
        """Do one of these on one conversation."""
        self._number += 1
        talk = self._drawn.choice(self._talks)
        act = self._drawn.choices(
            [self._read, self._read_context, self._compact, self._restore, self._erase, self._drop_a_stream],
            [3, 3, 2, 2, 1, 1],
        )[0]
        act(talk.id)

    def _read(self, conversation: str) -> None:
        asked_at = self._campaign.now()
        page = self._get(f"/conversations/{conversation}/messages", limit=PAGE, order="desc")
        if page is not None:
            self._campaign.log.reads.append(shown_messages(conversation, asked_at, page))

    def _read_context(self, conversation: str) -> None:
        asked_at = self._campaign.now()
        context = self._get(f"/conversations/{conversation}/context")
        if context is not None:
            self._campaign.log.reads.append(shown_context(conversation, asked_at, context))

    def _compact(self, conversation: str) -> None:
        note = Compacted(conversation=conversation, asked_at=self._campaign.now())
        self._campaign.log.compacted.append(note)
        body = self._post(f"/conversations/{conversation}/compact", {})
        if body is not None:
            note.compaction_id, note.status = body.get("id"), body["status"]
            note.answered_at = self._campaign.now()

    def _restore(self, conversation: str) -> None:
        states = self._get(f"/conversations/{conversation}/states", limit=PAGE, order="desc")
        if not states or not states["data"]:
            return
        version = self._drawn.choice(states["data"][:5])["version"]
        note = Restored(conversation=conversation, version=version, asked_at=self._campaign.now())
        self._campaign.log.restored.append(note)
        body = self._post(f"/conversations/{conversation}/restore", {"state_version": version})
        if body is not None:
            note.answered_at, note.made = self._campaign.now(), body.get("state_version")

    def _erase(self, conversation: str) -> None:
        log = self._campaign.log
        gone = {one.message_id for one in log.erased}
        known = [
            one
            for one in tuple(log.said)
            if one.conversation == conversation
            and one.answered_at is not None
            and one.answers[0].message_id not in {None, *gone}
        ]
        if not known:
            return
        chosen = self._drawn.choice(known)
        note = Erased(
            conversation=conversation,
            message_id=chosen.answers[0].message_id or "",
            content=chosen.content,
            asked_at=self._campaign.now(),
        )
        log.erased.append(note)
        path = f"/conversations/{conversation}/messages/{note.message_id}"
        try:
            done = self.persist(lambda: _checked(self._http.delete(path)), conversation)
        except RefusedError as refused:
            log.defect(f"an erasure was refused: {refused}")
            return
        if done is not None:
            note.answered_at = self._campaign.now()

    def _drop_a_stream(self, _: str) -> None:
        self._drawn.choice(self._followers).leave()

    def _get(self, path: str, **params: Any) -> Json | None:
        found: Json | None = self.persist(lambda: _checked(self._http.get(path, params=params)), path.split("/")[2])
        return found

    def _post(self, path: str, body: Json) -> Json | None:
        """Send under one key until it is answered; a final refusal is an answer too, with its code as ``status``."""
        key = {"Idempotency-Key": f"{self.name}-{self._number}"}
        try:
            found: Json | None = self.persist(
                lambda: _checked(self._http.post(path, json=body, headers=key)), path.split("/")[2], NO_SUMMARY
            )
        except RefusedError as refused:
            return {"status": refused.code}
        return found


def _checked(response: httpx.Response) -> Json:
    check(response)
    body: Json = response.json() if response.content else {}
    return body


def shown_messages(conversation: str, asked_at: float, page: Json, *, is_last: bool = False) -> Read:
    """The record of a page of the history, which has the newest message first."""
    shown = [_shown(item, item["id"]) for item in reversed(page["data"])]
    return Read(conversation=conversation, asked_at=asked_at, shown=tuple(shown), is_last=is_last)


def shown_context(conversation: str, asked_at: float, context: Json, *, is_last: bool = False) -> Read:
    """The record of a context: those of its messages that are messages of the history."""
    shown = [_shown(item, None) for item in context["messages"] if item["seq"] is not None]
    return Read(
        conversation=conversation,
        asked_at=asked_at,
        shown=tuple(shown),
        is_context=True,
        truncated=context["truncated"] is not None,
        is_last=is_last,
    )


def _shown(item: Json, id_: str | None) -> Shown:
    return Shown(seq=item["seq"], id=id_, content=item["content"], has_parts=bool(item["parts"]))
