"""A bank's desk: accounts, cards, payees, a month of transactions. Held out: nothing was chosen on these runs."""

from __future__ import annotations

import random
from typing import Any, Final

from bench.made_runs.transcript import Transcript, digits, hexadecimal

_SYSTEM: Final = "You are the desk of a bank. Identify the customer; never move money without a clear yes."
_FIRST: Final = ("Clara", "Idris", "Wei", "Stefan", "Aoife", "Rohan", "Elena", "Baptiste")
_LAST: Final = ("Marsh", "Bello", "Zhang", "Huber", "Nolan", "Mehta", "Rossi", "Leclerc")
_SHOPS: Final = (
    "Northside Market", "Blue Line Metro", "Cafe Orla", "PixelStream", "Gas & Go", "Book Cellar", "FitHub",
    "Agora Pharmacy", "AirNimbus", "Greenleaf Foods",
)  # fmt: skip
_KINDS: Final = ("checking", "savings", "joint")


def run(draw: random.Random, name: str) -> dict[str, Any]:
    """One run: identify the customer, look up the accounts, then do three or four tasks."""
    bank = _bank(draw)
    talk = Transcript(_SYSTEM, draw)
    customer = bank["customer"]
    talk.user(
        "Hi, there is a payment on my account that I don't know.",
        "Good morning, I need some help with my accounts.",
        f"Hello, {customer['full_name']} here. I have a few things about my cards and a transfer.",
    )
    talk.assistant("I can help. Please tell me your customer number and your date of birth.")
    talk.user(f"{customer['customer_number']}, {customer['date_of_birth']}.")
    talk.call(
        "verify_customer",
        {"verified": True, "session": f"sess-{hexadecimal(draw, 12)}"},
        customer_number=customer["customer_number"],
        date_of_birth=customer["date_of_birth"],
    )
    talk.call("get_customer", customer, customer_number=customer["customer_number"])
    talk.assistant(f"Thank you, {customer['full_name'].partition(' ')[0]}. What is it about?")
    account = draw.choice(bank["accounts"])
    talk.user(
        f"First, what is on my {account['kind']} account?", f"Please look at the {account['kind']} account first."
    )
    talk.call("list_accounts", {"accounts": bank["accounts"]}, customer_number=customer["customer_number"])
    talk.assistant(f"There are {account['balance']} on it.")
    steps = [_dispute, _transfer, _card, _order, _statement]
    draw.shuffle(steps)
    for step in steps[: draw.choice((3, 4))]:
        step(talk, bank, account)
    talk.user("Thanks, bye.", "That was all.")
    talk.assistant("Goodbye.")
    return talk.row(name)


_Record = dict[str, Any]


def _bank(draw: random.Random) -> _Record:
    name = f"{draw.choice(_FIRST)} {draw.choice(_LAST)}"
    accounts = [
        {"account_id": f"acc_{digits(draw, 8)}", "iban": f"DE{digits(draw, 20)}", "kind": kind, "currency": "EUR",
         "balance": round(draw.uniform(80, 9000), 2), "opened": f"201{draw.randint(0, 9)}-0{draw.randint(1, 9)}-15",
         "overdraft_limit": 500, "is_blocked": False}
        for kind in draw.sample(_KINDS, draw.choice((2, 3)))
    ]  # fmt: skip
    cards = [
        {"card_id": f"crd_{digits(draw, 6)}", "account_id": accounts[0]["account_id"], "type": kind,
         "masked_number": f"**** **** **** {digits(draw, 4)}", "status": "active", "daily_limit": 1000}
        for kind in ("debit", "credit")
    ]  # fmt: skip
    payees = [
        {"payee_id": f"PY{digits(draw, 5)}", "name": f"{draw.choice(_FIRST)} {draw.choice(_LAST)}",
         "iban": f"FR{digits(draw, 20)}", "last_used": f"2025-0{draw.randint(1, 3)}-{draw.randint(10, 28)}"}
        for _ in range(5)
    ]  # fmt: skip
    customer = {
        "customer_number": digits(draw, 8),
        "full_name": name,
        "date_of_birth": f"19{draw.randint(55, 99)}-{draw.randint(10, 12)}-{draw.randint(10, 28)}",
        "email": f"{name.lower().replace(' ', '.')}@mail.example",
        "phone": f"+49 30 {digits(draw, 7)}",
        "address": {"street": f"{draw.randint(2, 90)} Linden Way", "postal_code": digits(draw, 5), "city": "Berlin"},
        "segment": "retail",
        "kyc_status": "complete",
        "cards": cards,
        "account_ids": [one["account_id"] for one in accounts],
    }
    return {"customer": customer, "accounts": accounts, "cards": cards, "payees": payees}


def _transactions(draw: random.Random, account: _Record) -> list[_Record]:
    return [
        {"transaction_id": f"tx_{hexadecimal(draw, 10)}", "booked_at": f"2025-03-{day:02}T0{draw.randint(1, 9)}:12:44Z",
         "counterparty": draw.choice(_SHOPS), "amount": -round(draw.uniform(3, 240), 2), "currency": "EUR",
         "account_id": account["account_id"], "category": draw.choice(("food", "travel", "fun")), "state": "booked"}
        for day in sorted(draw.sample(range(1, 29), draw.choice((7, 9))))
    ]  # fmt: skip


def _dispute(talk: Transcript, bank: _Record, account: _Record) -> None:  # noqa: ARG001 - one shape for all
    draw = talk.draw
    booked = _transactions(draw, account)
    wrong = draw.choice(booked)
    talk.user(
        f"There is a payment to {wrong['counterparty']} of {-wrong['amount']} that I never made.",
        "Show me this month's payments, please. One is wrong.",
    )
    talk.call(
        "list_transactions",
        {"transactions": booked, "next": None},
        account_id=account["account_id"],
        since="2025-03-01",
    )
    day = wrong["booked_at"][:10]
    talk.assistant(f"I see {wrong['counterparty']}, {-wrong['amount']} EUR on {day}. Is it this one?")
    talk.user("Yes, that's the one. I was not there.", f"Yes, {wrong['counterparty']}.")
    talk.assistant("I can dispute it as not authorised. Shall I?")
    talk.user("Yes, dispute it.")
    talk.call(
        "open_dispute",
        {"dispute_id": f"DSP-{digits(draw, 6)}", "state": "open"},
        transaction_id=wrong["transaction_id"],
        account_id=account["account_id"],
        reason="not_authorised",
    )
    talk.assistant("The dispute is open; you hear from us within ten days.")


def _transfer(talk: Transcript, bank: _Record, account: _Record) -> None:
    draw = talk.draw
    payee = draw.choice(bank["payees"])
    amount = draw.choice((45, 120, 250.5, 380))
    talk.user(
        f"Send {amount} euros to {payee['name']}.", f"I want to transfer {amount} to {payee['name']} for the rent."
    )
    talk.call("list_payees", bank["payees"], customer_number=bank["customer"]["customer_number"])
    talk.assistant(f"{amount} EUR from your {account['kind']} account to {payee['name']} ({payee['iban'][-4:]})?")
    talk.user("Yes.", "Yes, send it.")
    talk.call(
        "make_transfer",
        {"reference": f"TR{digits(draw, 9)}", "state": "sent"},
        from_account=account["account_id"],
        payee_id=payee["payee_id"],
        iban=payee["iban"],
        amount=amount,
    )
    talk.assistant("It is sent.")


def _card(talk: Transcript, bank: _Record, account: _Record) -> None:  # noqa: ARG001
    card = talk.draw.choice(bank["cards"])
    last = card["masked_number"][-4:]
    talk.user(f"My {card['type']} card is gone, please block it.", f"I lost the card that ends in {last}.")
    talk.assistant(f"The {card['type']} card ending in {last}. Block it and send a new one?")
    talk.user("Yes, to my address.", "Yes please.")
    talk.call("block_card", {"card_id": card["card_id"], "status": "blocked"}, card_id=card["card_id"], reason="lost")
    home = bank["customer"]["address"]
    talk.call("order_card", "ordered", card_id=card["card_id"], street=home["street"], postal_code=home["postal_code"])
    talk.assistant("It is blocked, and a new one is on its way.")


def _order(talk: Transcript, bank: _Record, account: _Record) -> None:
    orders = [
        {"order_id": f"so-{digits(talk.draw, 6)}", "to": payee["name"], "payee_id": payee["payee_id"],
         "amount": talk.draw.randint(20, 400), "day_of_month": talk.draw.randint(1, 28), "active": True}
        for payee in bank["payees"][:4]
    ]  # fmt: skip
    order = talk.draw.choice(orders)
    talk.user(
        f"Which standing orders do I have? The one to {order['to']} should change.",
        "I'd like to change a standing order.",
    )
    talk.call("list_standing_orders", orders, account_id=account["account_id"])
    talk.assistant(f"The one to {order['to']} is {order['amount']} on day {order['day_of_month']}. What should change?")
    day = talk.draw.choice((3, 5, 15))
    talk.user(f"The one to {order['to']}: from now on day {day}.")
    talk.assistant(f"To {order['to']} on day {day}. Confirm?")
    talk.user("Confirmed.")
    talk.call("change_standing_order", "ok", order_id=order["order_id"], account_id=account["account_id"], day=day)
    talk.assistant("Changed.")


def _statement(talk: Transcript, bank: _Record, account: _Record) -> None:
    talk.user(
        "Please send me the statement of March by e-mail.", f"I need a statement of the {account['kind']} account."
    )
    talk.call(
        "send_statement", "queued", account_id=account["account_id"], month="2025-03", email=bank["customer"]["email"]
    )
    talk.assistant(f"It is on its way to {bank['customer']['email']}.")
