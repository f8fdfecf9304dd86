"""An assistant for mail, calendar and contacts: many tools, each with its own kind of id; some answer in lines."""

from __future__ import annotations

import random
from typing import Any, Final

from bench.made_runs.transcript import Transcript, digits, hexadecimal

_SYSTEM: Final = "You look after mail, calendar, contacts and files. Ask before you send or delete anything."
_PEOPLE: Final = (
    "Rosa Lind", "Kofi Mensah", "Yuki Sato", "Anna Berg", "Luis Ortega", "Farah Aziz", "Tom Reed", "Vera Popov",
)  # fmt: skip
_SUBJECTS: Final = ("Budget 2025", "Offsite in May", "Contract draft", "Hiring plan", "Release notes", "Venue options")
_ROOMS: Final = ("Cedar", "Maple", "Aspen", "Rowan")


def run(draw: random.Random, name: str) -> dict[str, Any]:
    """One run: search once or twice in each place, then do what the user wants with the results."""
    people = [_person(draw, who) for who in draw.sample(_PEOPLE, 5)]
    mails = [_mail(draw, people) for _ in range(6)]
    events = [_event(draw, people) for _ in range(5)]
    files = [_file(draw) for _ in range(5)]
    talk = Transcript(_SYSTEM, draw)
    mail, event, file = draw.choice(mails), draw.choice(events), draw.choice(files)
    who = draw.choice(people)
    talk.user(
        f"What did {mail['from']['name']} write me about {mail['subject']}?",
        "Hi, please go through my mail and my calendar of this week with me.",
        f"I need to prepare the meeting on {event['start'][:10]}. What do I have on it?",
    )
    talk.call("search_mail", {"messages": mails, "next_page": None}, query=mail["subject"], folder="inbox")
    talk.assistant(f"There are {len(mails)} mails; {mail['from']['name']} wrote about {mail['subject']}.")
    talk.user("And my calendar?", f"Is it about the meeting '{event['title']}'?")
    talk.call("list_events", _as_lines(events), calendar="primary", week=event["start"][:10])
    if draw.random() < 0.5:
        talk.user(f"Who is {who['name']}?")
        talk.call("find_contacts", people, query=who["name"])
    talk.user("Find the file that belongs to it.", f"There should be a file called {file['title']}.")
    talk.call("search_files", {"files": files}, query=file["title"])
    talk.assistant(f"I found {file['title']} and the event '{event['title']}'. What shall I do?")
    steps = [_reply, _move, _share, _invite, _label]
    draw.shuffle(steps)
    for step in steps[: draw.choice((3, 4, 5))]:
        step(talk, {"mail": mail, "event": event, "file": file, "who": who})
    talk.user("Thank you, that's it.")
    talk.assistant("Gladly.")
    return talk.row(name)


def _person(draw: random.Random, who: str) -> dict[str, Any]:
    first, last = who.lower().split()
    return {
        "contact_id": f"ct_{hexadecimal(draw, 8)}",
        "name": who,
        "email": f"{first}.{last}@{draw.choice(('norvik.example', 'aldertech.example'))}",
        "phone": f"+44 20 {digits(draw, 4)} {digits(draw, 4)}",
        "company": draw.choice(("Norvik", "Aldertech")),
        "starred": draw.random() < 0.3,
    }


def _mail(draw: random.Random, people: list[dict[str, Any]]) -> dict[str, Any]:
    sender = draw.choice(people)
    return {
        "message_id": f"{hexadecimal(draw, 16)}",
        "thread_id": f"th-{digits(draw, 6)}",
        "from": {"name": sender["name"], "email": sender["email"]},
        "subject": draw.choice(_SUBJECTS),
        "received": f"2025-03-{draw.randint(10, 28)}T{draw.randint(10, 18)}:{draw.randint(10, 59)}:00Z",
        "snippet": "Could you have a look at this before Friday and tell me what you think of the second part?",
        "unread": draw.random() < 0.5,
        "attachments": [],
    }


def _event(draw: random.Random, people: list[dict[str, Any]]) -> dict[str, Any]:
    day, hour = draw.randint(10, 28), draw.randint(10, 16)
    return {
        "event_id": f"evt_{hexadecimal(draw, 10)}",
        "title": f"{draw.choice(('Review', 'Sync', 'Planning'))}: {draw.choice(_SUBJECTS)}",
        "start": f"2025-03-{day}T{hour}:00",
        "end": f"2025-03-{day}T{hour + 1}:00",
        "room": draw.choice(_ROOMS),
        "guests": [one["email"] for one in draw.sample(people, 2)],
    }


def _file(draw: random.Random) -> dict[str, Any]:
    return {
        "file_id": f"1{hexadecimal(draw, 20)}",
        "title": f"{draw.choice(_SUBJECTS)} v{draw.randint(1, 9)}",
        "type": draw.choice(("document", "sheet", "slides")),
        "size": draw.randint(10_000, 900_000),
        "folder": f"fld_{digits(draw, 5)}",
        "link": f"https://files.example/{hexadecimal(draw, 12)}",
    }


def _as_lines(events: list[dict[str, Any]]) -> str:
    return "\n".join(
        f"- [{one['event_id']}] {one['start']}-{one['end'][11:]} {one['title']} ({one['room']})"
        f" with {', '.join(one['guests'])}"
        for one in events
    )


def _reply(talk: Transcript, about: dict[str, dict[str, Any]]) -> None:
    mail = about["mail"]
    talk.user(f"Answer {mail['from']['name']} that I'll read it by Friday.")
    talk.assistant(f"I'd write to {mail['from']['name']}: 'I will read it by Friday.' Send it?")
    talk.user("Yes, send it.")
    talk.call(
        "send_mail",
        "sent",
        to=mail["from"]["email"],
        subject=mail["subject"],
        in_reply_to=mail["message_id"],
        thread_id=mail["thread_id"],
    )


def _move(talk: Transcript, about: dict[str, dict[str, Any]]) -> None:
    event = about["event"]
    talk.user(f"Move '{event['title']}' by one hour.", "Move the meeting to one hour later, same room.")
    talk.assistant(f"Moved to {event['end'][11:]} on {event['end'][:10]}, in {event['room']}. Is that right?")
    talk.user("Yes.")
    talk.call("update_event", "ok", event_id=event["event_id"], start=event["end"], room=event["room"])


def _share(talk: Transcript, about: dict[str, dict[str, Any]]) -> None:
    file, who = about["file"], about["mail"]["from"]
    talk.user(f"Share {file['title']} with {who['name']}.", f"Give {who['name']} access to that file.")
    talk.call("share_file", "shared", file_id=file["file_id"], email=who["email"], role="reader")
    talk.assistant(f"{who['name']} can read it now.")


def _invite(talk: Transcript, about: dict[str, dict[str, Any]]) -> None:
    event, who = about["event"], about["mail"]["from"]
    talk.user(f"Invite {who['name']} to '{event['title']}', and attach the file.")
    talk.call("add_guest", "ok", event_id=event["event_id"], email=who["email"], attachment=about["file"]["link"])
    talk.assistant("Done.")


def _label(talk: Transcript, about: dict[str, dict[str, Any]]) -> None:
    mail = about["mail"]
    talk.user("And put that mail into the folder with the file.", "File the mail away as done.")
    talk.call("move_thread", "ok", thread_id=mail["thread_id"], folder=about["file"]["folder"])
    talk.assistant("It is there now.")
