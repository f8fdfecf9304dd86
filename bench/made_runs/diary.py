"""A diary's assistant: calendars, free times, people, rooms and invitations, all deeply nested in their envelopes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from bench.made_runs.transcript import Transcript, digits, hexadecimal

_SYSTEM: Final = "You keep a diary. Name day, time and people before you book, and wait for a yes."
_PEOPLE: Final = (
    "Ines Vidal", "Marek Nowak", "Sofia Rossi", "Henrik Dahl", "Aisha Bello", "Paul Meier", "Clara Jensen", "Omar Said",
)  # fmt: skip
_SUBJECTS: Final = ("Roadmap", "Interview", "Supplier call", "Board preparation", "Retrospective", "Design review")
_ROOMS: Final = ("Oslo", "Lima", "Kyoto", "Quito", "Tunis")
_ZONES: Final = ("Europe/Madrid", "Europe/Oslo", "America/Lima")


def run(draw: random.Random, name: str) -> dict[str, Any]:
    """One run: look up the appointments and people, then book and change; some steps come back to the first ones."""
    zone = draw.choice(_ZONES)
    people = [_person(draw, who) for who in draw.sample(_PEOPLE, 5)]
    calendars = [_calendar(draw, title, zone) for title in ("Work", "Private", "Team")]
    events = [_event(draw, people, calendars[0], zone) for _ in range(5)]
    talk = Transcript(_SYSTEM, draw)
    event = draw.choice(events)
    who = draw.choice(people)
    talk.user(
        "Good morning. What is on this week?",
        f"I have to move my {event['subject']} meeting, and there is a new one to book with {who['displayName']}.",
        f"Please look at my diary from {event['start']['dateTime'][:10]} on.",
    )
    talk.call("list_calendars", {"value": calendars})
    talk.call(
        "list_events",
        {"value": events, "nextLink": None},
        calendar_id=calendars[0]["id"],
        start=event["start"]["dateTime"][:10],
    )
    talk.assistant(
        "You have " + "; ".join(f"{one['subject']} on {one['start']['dateTime'][:10]}" for one in events[:4]) + ".",
        f"There are {len(events)} entries; {event['subject']} is on {event['start']['dateTime'][:10]}.",
    )
    talk.user(
        f"Who is {who['displayName']} again? I want to meet them.", f"I need half an hour with {who['displayName']}."
    )
    talk.call("search_people", {"people": people[:4] if who in people[:4] else [who, *people[:3]]}, query="team")
    slots = [_slot(draw, zone) for _ in range(4)]
    talk.call(
        "find_times",
        {"suggestions": slots, "emptySuggestionsReason": ""},
        attendees=[who["mail"]],
        minutes=30,
    )
    slot_words = " or ".join(f"{one['start']['dateTime'][:10]} at {one['start']['dateTime'][11:]}" for one in slots[:3])
    talk.assistant(f"Both of you are free on {slot_words}.")
    about = {"event": event, "who": who, "slot": draw.choice(slots[:3]), "rooms": [_room(draw, one) for one in _ROOMS]}
    steps = [_book, _move, _book_room, _decline, _forward, _remind]
    draw.shuffle(steps)
    for step in steps[: draw.choice((3, 4))]:
        step(talk, about, calendars)
    talk.user("Thanks, that is all for today.")
    talk.assistant("Have a good day.")
    return talk.row(name)


def _person(draw: random.Random, who: str) -> dict[str, Any]:
    first, last = who.lower().split()
    return {
        "id": f"{hexadecimal(draw, 8)}-{hexadecimal(draw, 4)}",
        "displayName": who,
        "mail": f"{first[0]}.{last}@{draw.choice(('fjordbank.example', 'lumen.example'))}",
        "jobTitle": draw.choice(("Engineer", "Head of Sales", "Designer", "Analyst")),
        "businessPhones": [f"+47 22 {digits(draw, 2)} {digits(draw, 2)} {digits(draw, 2)}"],
        "officeLocation": f"{draw.randint(1, 9)}.{draw.randint(10, 40)}",
    }


def _calendar(draw: random.Random, title: str, zone: str) -> dict[str, Any]:
    return {"id": f"cal_{hexadecimal(draw, 10)}", "name": title, "canEdit": True, "color": "auto", "timeZone": zone}


def _when(day: int, hour: int, minute: int, zone: str) -> dict[str, str]:
    return {"dateTime": f"2025-09-{day:02}T{hour:02}:{minute:02}", "timeZone": zone}


def _event(draw: random.Random, people: list[dict[str, Any]], calendar: Mapping[str, Any], zone: str) -> dict[str, Any]:
    day, hour = draw.randint(1, 28), draw.randint(8, 16)
    host, *guests = draw.sample(people, 3)
    return {
        "id": f"AQ{hexadecimal(draw, 14)}",
        "iCalUId": hexadecimal(draw, 16),
        "calendarId": calendar["id"],
        "subject": draw.choice(_SUBJECTS),
        "start": _when(day, hour, 0, zone),
        "end": _when(day, hour + 1, 0, zone),
        "location": {"displayName": draw.choice(_ROOMS), "locationType": "conferenceRoom"},
        "organizer": {"emailAddress": {"name": host["displayName"], "address": host["mail"]}},
        "attendees": [
            {"type": "required", "emailAddress": {"name": one["displayName"], "address": one["mail"]}} for one in guests
        ],
        "onlineMeeting": {"joinUrl": f"https://meet.example/{digits(draw, 9)}"},
        "isCancelled": False,
        "sensitivity": "normal",
    }


def _slot(draw: random.Random, zone: str) -> dict[str, Any]:
    day, hour = draw.randint(1, 28), draw.randint(8, 16)
    return {
        "confidence": draw.choice((100.0, 50.0)),
        "start": _when(day, hour, 30, zone),
        "end": _when(day, hour + 1, 0, zone),
    }


def _room(draw: random.Random, title: str) -> dict[str, Any]:
    return {
        "id": f"rm-{digits(draw, 5)}",
        "displayName": title,
        "emailAddress": f"room.{title.lower()}@fjordbank.example",
        "capacity": draw.choice((4, 8, 12)),
        "floor": draw.randint(1, 9),
    }


_About = Mapping[str, Any]


def _book(talk: Transcript, about: _About, calendars: list[dict[str, Any]]) -> None:
    who, slot = about["who"], about["slot"]
    day, hour = slot["start"]["dateTime"].split("T")
    talk.user(f"Take {day}, {hour}.", f"The one on {day} is good.")
    talk.assistant(f"{day} at {hour} with {who['displayName']}, half an hour, in your work calendar. Yes?")
    talk.user("Yes.", "Yes, book it.")
    made = f"AQ{hexadecimal(talk.draw, 14)}"
    talk.call(
        "create_event",
        {"id": made, "webLink": f"https://diary.example/{made}"},
        calendar_id=calendars[0]["id"],
        start=slot["start"]["dateTime"],
        end=slot["end"]["dateTime"],
        attendees=[who["mail"]],
    )
    talk.user("Give it the subject 'First talk'.")
    talk.call("update_event", "ok", event_id=made, subject="First talk")
    talk.assistant("Done.")


def _move(talk: Transcript, about: _About, calendars: list[dict[str, Any]]) -> None:
    event = about["event"]
    target = calendars[2]
    talk.user(f"Put {event['subject']} into the team calendar.", f"{event['subject']} belongs into the Team calendar.")
    talk.assistant(f"I move {event['subject']} of {event['start']['dateTime'][:10]} there. Is that right?")
    talk.user("Yes please.")
    talk.call("move_event", "moved", event_id=event["id"], destination_calendar_id=target["id"])


def _book_room(talk: Transcript, about: _About, calendars: list[dict[str, Any]]) -> None:  # noqa: ARG001 - one shape
    event, rooms = about["event"], about["rooms"]
    talk.user(f"We need a larger room for {event['subject']}.")
    talk.call("list_rooms", {"value": rooms}, capacity=8)
    room = talk.draw.choice(rooms)
    talk.assistant("There are " + ", ".join(f"{one['displayName']} ({one['capacity']})" for one in rooms) + ".")
    talk.user(f"{room['displayName']} please.")
    talk.call("update_event", "ok", event_id=event["id"], room_id=room["id"], room_mail=room["emailAddress"])
    talk.assistant(f"It is in {room['displayName']} now.")


def _decline(talk: Transcript, about: _About, calendars: list[dict[str, Any]]) -> None:  # noqa: ARG001
    event = about["event"]
    host = event["organizer"]["emailAddress"]
    talk.user(f"Actually I can't come to {event['subject']}. Tell {host['name']}.")
    talk.call("decline_event", "declined", event_id=event["id"], comment="cannot come")
    talk.call("send_mail", "sent", to=host["address"], subject=event["subject"])
    talk.assistant(f"{host['name']} knows.")


def _forward(talk: Transcript, about: _About, calendars: list[dict[str, Any]]) -> None:  # noqa: ARG001
    event, who = about["event"], about["who"]
    talk.user(f"Forward {event['subject']} to {who['displayName']}, with the link.")
    link = event["onlineMeeting"]["joinUrl"]
    talk.call("forward_event", "ok", event_id=event["id"], to=who["mail"], link=link)
    talk.assistant("Forwarded.")


def _remind(talk: Transcript, about: _About, calendars: list[dict[str, Any]]) -> None:
    event, who = about["event"], about["who"]
    talk.user(f"Remind me to call {who['displayName']} before it.")
    talk.call(
        "create_reminder",
        "ok",
        calendar_id=calendars[1]["id"],
        event_id=event["id"],
        phone=who["businessPhones"][0],
    )
    talk.assistant("You will be reminded.")
