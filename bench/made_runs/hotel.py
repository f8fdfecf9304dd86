"""A hotel group's desk: guests, bookings, offers of rooms and rates, extras. Held out: nothing was chosen on them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from bench.made_runs.transcript import Transcript, digits

_SYSTEM: Final = "You are the desk of a group of hotels. Know who the guest is first; ask before you change a booking."
_FIRST: Final = ("Beatriz", "Aksel", "Noor", "Julian", "Saoirse", "Emeka", "Hana", "Mateus")
_LAST: Final = ("Fontaine", "Bjork", "Rahman", "Castell", "Doyle", "Eze", "Kimura", "Prado")
_HOTELS: Final = (("LIS01", "Casa do Rio", "Lisbon"), ("OSL02", "Fjord House", "Oslo"), ("KYO01", "Maple Inn", "Kyoto"))
_TYPES: Final = ("standard_double", "superior_twin", "junior_suite", "family_room")
_RATES: Final = ("FLEX", "SAVER", "HALFBOARD")
_EXTRAS: Final = ("parking", "airport_transfer", "late_checkout", "baby_cot", "spa_access")


def run(draw: random.Random, name: str) -> dict[str, Any]:
    """One run: identify the guest and the booking, then fulfil three or four wishes."""
    guest, bookings = _guest(draw)
    talk = Transcript(_SYSTEM, draw)
    booking = draw.choice(bookings)
    talk.user(
        f"Good evening. It's about my stay in {booking['hotel']['city']}.",
        f"Hello, I have a booking {booking['confirmation']} and some wishes.",
        "Hi, I'd like to change a few things about a stay.",
    )
    talk.assistant("Gladly. May I have your member number, or your name and e-mail?")
    if draw.random() < 0.5:
        talk.user(f"My number is {guest['member_number']}.")
        talk.call("find_guest", {"guest_id": guest["guest_id"]}, member_number=guest["member_number"])
    else:
        talk.user(f"{guest['full_name']}, {guest['email']}")
        talk.call("find_guest", {"guest_id": guest["guest_id"]}, full_name=guest["full_name"], email=guest["email"])
    talk.call("get_guest", guest, guest_id=guest["guest_id"])
    talk.assistant(f"Thank you, {guest['full_name'].partition(' ')[0]}. Which stay is it?")
    talk.user(f"The one in {booking['hotel']['city']}, from {booking['arrival']}.", f"It's {booking['confirmation']}.")
    for one in [booking, *[other for other in bookings if other is not booking][: draw.choice((0, 1))]]:
        talk.call("get_booking", one, confirmation=one["confirmation"])
    steps = [_dates, _room, _extra, _pay, _second_guest, _points]
    draw.shuffle(steps)
    for step in steps[: draw.choice((3, 4))]:
        step(talk, guest, booking)
        talk.assistant("Done. Anything else?", "That is arranged. What else may I do?")
    talk.user("No, thank you.", "That's all, good night.")
    talk.assistant("Have a pleasant stay.")
    return talk.row(name)


_Record = dict[str, Any]


def _guest(draw: random.Random) -> tuple[_Record, list[_Record]]:
    name = f"{draw.choice(_FIRST)} {draw.choice(_LAST)}"
    cards = [
        {"card_token": f"tok_{brand}_{digits(draw, 8)}", "brand": brand, "last_four": digits(draw, 4),
         "expires": "09/27"}
        for brand in draw.sample(("visa", "amex", "maestro"), 2)
    ]  # fmt: skip
    guest_id = f"G-{digits(draw, 6)}"
    bookings = [_booking(draw, guest_id, cards) for _ in range(3)]
    guest = {
        "guest_id": guest_id,
        "member_number": digits(draw, 9),
        "full_name": name,
        "email": f"{name.lower().replace(' ', '_')}@post.example",
        "phone": f"+351 9{digits(draw, 8)}",
        "tier": draw.choice(("silver", "gold")),
        "points": draw.randint(2_000, 60_000),
        "cards": cards,
        "preferences": {"floor": draw.choice(("high", "low")), "pillow": "feather", "newsletter": False},
        "bookings": [one["confirmation"] for one in bookings],
    }
    return guest, bookings


def _booking(draw: random.Random, guest_id: str, cards: list[_Record]) -> _Record:
    code, hotel, city = draw.choice(_HOTELS)
    month, day = draw.randint(5, 9), draw.randint(10, 20)
    return {
        "confirmation": "".join(draw.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=2)) + digits(draw, 6),
        "guest_id": guest_id,
        "hotel": {"hotel_id": code, "name": hotel, "city": city, "check_in_from": "15:00", "stars": 4},
        "arrival": f"2025-0{month}-{day}",
        "departure": f"2025-0{month}-{day + draw.randint(2, 6)}",
        "rooms": [
            {"room_id": f"R{digits(draw, 5)}", "room_type": draw.choice(_TYPES), "rate_plan": draw.choice(_RATES),
             "adults": 2, "children": draw.choice((0, 1)), "price_per_night": draw.randint(90, 260)}
        ],
        "card_token": draw.choice(cards)["card_token"],
        "status": "confirmed",
        "total": draw.randint(300, 1500),
        "created_at": f"2025-02-{draw.randint(10, 28)}T{draw.randint(10, 20)}:14:09Z",
        "cancellation": {"free_until": f"2025-0{month}-0{draw.randint(1, 9)}", "fee": draw.randint(80, 200)},
    }  # fmt: skip


def _offers(draw: random.Random, count: int) -> list[_Record]:
    return [
        {"offer_id": f"OF-{digits(draw, 7)}", "room_type": draw.choice(_TYPES), "rate_plan": draw.choice(_RATES),
         "bed": draw.choice(("king", "twin")), "free_rooms": draw.randint(0, 7), "refundable": draw.random() < 0.5,
         "price_per_night": draw.randint(90, 320), "taxes": draw.randint(5, 30)}
        for _ in range(count)
    ]  # fmt: skip


def _dates(talk: Transcript, guest: _Record, booking: _Record) -> None:  # noqa: ARG001 - one shape for all
    day = int(booking["departure"][-2:])
    new = f"{booking['departure'][:-2]}{day + 1}"
    talk.user("I'd like to stay one night longer.", f"Can I leave on {new} instead of {booking['departure']}?")
    hotel = booking["hotel"]["hotel_id"]
    free = {"hotel_id": hotel, "from": booking["departure"], "to": new, "free_rooms": 3, "extra_cost": 140}
    talk.call("check_availability", free, hotel_id=hotel, arrival=booking["arrival"], departure=new)
    talk.assistant(f"Until {new} it is 140 euros more. Shall I change it?")
    talk.user("Yes please.")
    talk.call("change_dates", "ok", confirmation=booking["confirmation"], arrival=booking["arrival"], departure=new)


def _room(talk: Transcript, guest: _Record, booking: _Record) -> None:  # noqa: ARG001
    draw = talk.draw
    offers = _offers(draw, draw.choice((6, 8, 10)))
    talk.user("Is there a bigger room?", "What other rooms could I have on these dates?")
    talk.call(
        "search_offers",
        {"hotel_id": booking["hotel"]["hotel_id"], "currency": "EUR", "offers": offers},
        hotel_id=booking["hotel"]["hotel_id"],
        arrival=booking["arrival"],
        departure=booking["departure"],
    )
    shown = draw.sample(offers, 3)
    offer_words = "; ".join(
        f"{one['room_type'].replace('_', ' ')} ({one['rate_plan']}, {one['bed']} bed) at {one['price_per_night']} euros"
        for one in shown
    )
    talk.assistant(f"I can offer: {offer_words}.")
    wanted = draw.choice(shown)
    talk.user(f"The {wanted['room_type'].replace('_', ' ')} for {wanted['price_per_night']}, please.")
    talk.assistant("I would move you there; the rest of the booking stays. Is that right?")
    talk.user("Yes, go on.")
    talk.call(
        "change_room",
        {"confirmation": booking["confirmation"], "status": "changed"},
        confirmation=booking["confirmation"],
        room_id=booking["rooms"][0]["room_id"],
        offer_id=wanted["offer_id"],
    )


def _extra(talk: Transcript, guest: _Record, booking: _Record) -> None:  # noqa: ARG001
    extras: list[_Record] = [
        {"extra_code": f"X{digits(talk.draw, 3)}", "name": name, "price": talk.draw.randint(10, 60), "per": "stay"}
        for name in _EXTRAS
    ]
    extra = talk.draw.choice(extras)
    named = extra["name"].replace("_", " ")
    talk.user(f"Can I have {named}?", f"We'd also need {named}.")
    talk.call("list_extras", extras, hotel_id=booking["hotel"]["hotel_id"])
    talk.assistant(f"{named.capitalize()} is {extra['price']} euros. Shall I add it?")
    talk.user("Please do.", "Yes.")
    talk.call("add_extra", "ok", confirmation=booking["confirmation"], extra_code=extra["extra_code"], quantity=1)


def _pay(talk: Transcript, guest: _Record, booking: _Record) -> None:
    card = next(one for one in guest["cards"] if one["card_token"] != booking["card_token"])
    talk.user(
        f"Please charge my {card['brand']} instead.",
        f"And use the card that ends in {card['last_four']} for this stay.",
    )
    talk.assistant(f"The {card['brand']} ending in {card['last_four']} then. Correct?")
    talk.user("Correct.", "Yes.")
    talk.call("set_payment_card", "ok", confirmation=booking["confirmation"], card_token=card["card_token"])


def _second_guest(talk: Transcript, guest: _Record, booking: _Record) -> None:  # noqa: ARG001
    name = f"{talk.draw.choice(_FIRST)} {talk.draw.choice(_LAST)}"
    talk.user(f"{name} will come with me; please put the name on the booking.")
    talk.assistant(f"I'd add {name} to room {booking['rooms'][0]['room_id']}. All right?")
    talk.user("All right.")
    talk.call(
        "add_companion",
        "ok",
        confirmation=booking["confirmation"],
        room_id=booking["rooms"][0]["room_id"],
        companion=name,
    )


def _points(talk: Transcript, guest: Mapping[str, Any], booking: _Record) -> None:
    amount = talk.draw.choice((1000, 1500, 2000))
    talk.user(f"I want to use {amount} points for it.", f"Could {amount} of my points go towards this stay?")
    quote: _Record = {"guest_id": guest["guest_id"], "points": amount, "worth": amount // 100,
             "quote_id": f"Q{digits(talk.draw, 6)}"}  # fmt: skip
    talk.call("quote_points", quote, guest_id=guest["guest_id"], points=amount)
    talk.assistant(f"They are worth {amount // 100} euros. Use them?")
    talk.user("Yes.")
    talk.call(
        "redeem_points",
        "ok",
        guest_id=guest["guest_id"],
        quote_id=quote["quote_id"],
        confirmation=booking["confirmation"],
    )
