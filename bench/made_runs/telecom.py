"""A telephone company's desk: customers, lines, plans, bills, devices and tickets; some tools answer in plain text."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from bench.made_runs.transcript import Transcript, digits

_SYSTEM: Final = "You are the support desk of a telephone company. Look at the line before you change it."
_FIRST: Final = ("Marta", "Samir", "Ingrid", "Owen", "Leila", "Pavel", "Grace", "Diego")
_LAST: Final = ("Keller", "Ncube", "Petrov", "Silva", "Holm", "Iyer", "Walsh", "Duarte")
_PLANS: Final = ("Basic 2GB", "Plus 10GB", "Family 40GB", "Unlimited", "Travel 15GB")
_PHONES: Final = ("Pixel 7", "Galaxy S22", "iPhone 13", "Moto G60")


def run(draw: random.Random, name: str) -> dict[str, Any]:
    """One run: identify the customer and the lines, then take three or four steps on one or two lines."""
    customer, plans, bills = _customer(draw)
    talk = Transcript(_SYSTEM, draw)
    line, other = draw.sample(customer["lines"], 2)
    talk.user(
        f"My phone {line['phone_number']} has no data since yesterday.",
        "Hello, mobile data stopped working while I'm abroad. Can you look at it?",
        f"Hi, I've a question about my bill and about the line {line['phone_number']}.",
    )
    talk.assistant("I'm sorry to hear that. May I have your phone number, or your full name and date of birth?")
    if draw.random() < 0.5:
        talk.user(f"It's {line['phone_number']}.")
        talk.call("get_customer_by_phone", customer, phone_number=line["phone_number"])
    else:
        talk.user(f"{customer['full_name']}, born {customer['date_of_birth']}.")
        born = customer["date_of_birth"]
        talk.call("get_customer_by_name", customer, full_name=customer["full_name"], dob=born)
    talk.assistant(
        f"Thank you, {customer['full_name'].partition(' ')[0]}. Which of your {len(customer['lines'])} lines is it?"
    )
    talk.user(f"The {line['label']} one.", f"{line['phone_number']}, the {line['label']} line.")
    talk.call("get_line", line, line_id=line["line_id"])
    talk.call("get_data_usage", _usage(draw, line), customer_id=customer["customer_id"], line_id=line["line_id"])
    steps = [_refuel, _roaming, _plan, _bill, _suspend, _ticket, _device]
    draw.shuffle(steps)
    for number, step in enumerate(steps[: draw.choice((3, 4))]):
        step(talk, customer, line if number % 2 == 0 else other, {"plans": plans, "bills": bills})
    talk.user("Great, thanks a lot.", "That's it, thank you.")
    talk.assistant("You're welcome, have a good day.")
    return talk.row(name)


def _customer(draw: random.Random) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    number = digits(draw, 4)
    plans = [
        {"plan_id": f"P{digits(draw, 4)}", "name": name, "data_limit_gb": draw.choice((2, 10, 15, 40)),
         "price_per_month": draw.choice((15.0, 30.0, 55.0)), "price_per_gb": 2.0}
        for name in _PLANS
    ]  # fmt: skip
    lines = [_line(draw, label, plans) for label in draw.sample(("work", "home", "daughter's", "tablet"), 3)]
    bills = [
        {"bill_id": f"B{digits(draw, 6)}", "period": f"2025-0{month}-01 to 2025-0{month}-28",
         "total_due": round(draw.uniform(20, 160), 2), "status": draw.choice(("paid", "overdue")),
         "line_items": [{"description": f"Plan {line['plan_id']}", "amount": 30.0} for line in lines]}
        for month in (2, 3, 4)
    ]  # fmt: skip
    customer = {
        "customer_id": f"C{number}",
        "full_name": f"{draw.choice(_FIRST)} {draw.choice(_LAST)}",
        "date_of_birth": f"19{draw.randint(60, 99)}-0{draw.randint(1, 9)}-{draw.randint(10, 28)}",
        "email": f"customer{number}@example.org",
        "phone_number": lines[0]["phone_number"],
        "address": {"street": f"{digits(draw, 2)} Quay Street", "city": "Rivermouth", "zip_code": digits(draw, 5)},
        "account_status": "active",
        "payment_methods": [
            {"method_type": "card", "account_number_last_4": digits(draw, 4), "expiration_date": "11/2027"}
        ],
        "lines": lines,
        "bill_ids": [bill["bill_id"] for bill in bills],
        "last_extension_date": None,
        "goodwill_credit_used_this_year": 0.0,
    }
    return customer, plans, bills


def _line(draw: random.Random, label: str, plans: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "line_id": f"L{digits(draw, 5)}",
        "label": label,
        "phone_number": f"555-{digits(draw, 3)}-{digits(draw, 4)}",
        "status": "active",
        "plan_id": draw.choice(plans)["plan_id"],
        "device": {
            "device_id": f"D{digits(draw, 5)}",
            "model": draw.choice(_PHONES),
            "imei": digits(draw, 15),
            "is_esim_capable": True,
        },
        "roaming_enabled": False,
        "data_used_gb": round(draw.uniform(0, 15), 1),
        "contract_end_date": f"2026-{draw.randint(10, 12)}-31",
    }


def _usage(draw: random.Random, line: Mapping[str, Any]) -> dict[str, Any]:
    return {"line_id": line["line_id"], "data_used_gb": line["data_used_gb"], "data_limit_gb": 15,
            "data_refueling_gb": 0.0, "cycle_end_date": f"2025-04-{draw.randint(20, 30)}"}  # fmt: skip


_Rest = Mapping[str, Any]


def _refuel(talk: Transcript, customer: _Rest, line: _Rest, rest: _Rest) -> None:  # noqa: ARG001 - one shape for all
    amount = talk.draw.choice((2.0, 3.0, 5.0))
    talk.user(
        f"Please add {amount} GB to the {line['label']} line.", f"Can I get {amount} GB more on {line['phone_number']}?"
    )
    talk.assistant(f"{amount} GB cost ${2 * amount:.2f}. Shall I add them?")
    talk.user("Yes please.", "Yes.")
    result = f"Successfully added {amount} GB to line {line['line_id']}. Charged ${2 * amount:.2f}."
    talk.call("refuel_data", result, customer_id=customer["customer_id"], line_id=line["line_id"], gb_amount=amount)


def _roaming(talk: Transcript, customer: _Rest, line: _Rest, rest: _Rest) -> None:  # noqa: ARG001
    talk.user("I'm in France until Sunday. Is roaming on?", f"Turn roaming on for the {line['label']} line.")
    result = f"Roaming enabled for line {line['line_id']}"
    talk.call("enable_roaming", result, customer_id=customer["customer_id"], line_id=line["line_id"])
    talk.assistant("Roaming is on now. Please restart your phone.")
    talk.user("I restarted it. It seems to be better.", "OK, done.")


def _plan(talk: Transcript, customer: _Rest, line: _Rest, rest: _Rest) -> None:
    plans = rest["plans"]
    talk.user(
        "Which plans with more data do you have?", f"The plan of the {line['label']} line is too small. What is there?"
    )
    talk.call("get_available_plans", plans)
    talk.assistant("We have " + "; ".join(f"{plan['name']} at ${plan['price_per_month']:.0f}" for plan in plans) + ".")
    plan = talk.draw.choice(plans)
    talk.user(f"{plan['name']}, please.", f"Then {plan['name']} for {line['phone_number']}, from the next cycle.")
    talk.assistant(f"I would change {line['phone_number']} to {plan['name']}. Is that right?")
    talk.user("Yes, do that.")
    talk.call(
        "change_plan",
        "Plan changed.",
        customer_id=customer["customer_id"],
        line_id=line["line_id"],
        new_plan_id=plan["plan_id"],
    )


def _bill(talk: Transcript, customer: _Rest, line: _Rest, rest: _Rest) -> None:  # noqa: ARG001
    bills = rest["bills"]
    talk.user("And what about my last bills? One was too high.", "Is there anything that I have not paid?")
    talk.call("get_bills_for_customer", bills, customer_id=customer["customer_id"], limit=3)
    bill = talk.draw.choice(bills)
    talk.assistant(f"The bill of {bill['period'][:7]} is ${bill['total_due']}. Shall I send a request for its payment?")
    talk.user("Yes, send it.")
    talk.call(
        "send_payment_request", "Payment request sent.", customer_id=customer["customer_id"], bill_id=bill["bill_id"]
    )


def _suspend(talk: Transcript, customer: _Rest, line: _Rest, rest: _Rest) -> None:  # noqa: ARG001
    reason = talk.draw.choice(("phone lost", "on holiday"))
    talk.user(
        f"Please suspend the {line['label']} line, {reason}.", f"{line['phone_number']} should be suspended: {reason}."
    )
    talk.assistant("It costs $5 per month. Shall I suspend it?")
    talk.user("Yes.")
    result = {"line_id": line["line_id"], "status": "suspended"}
    talk.call("suspend_line", result, customer_id=customer["customer_id"], line_id=line["line_id"], reason=reason)


def _ticket(talk: Transcript, customer: _Rest, line: _Rest, rest: _Rest) -> None:  # noqa: ARG001
    ticket = f"TCK-{digits(talk.draw, 6)}"
    talk.user("The speed is still bad.", f"I also had a problem with calls on {line['phone_number']} last week.")
    opened = {
        "ticket_id": ticket,
        "line_id": line["line_id"],
        "status": "open",
        "priority": "P3",
        "created": "2025-04-11T10:21:07Z",
    }
    talk.call("create_ticket", opened, customer_id=customer["customer_id"], line_id=line["line_id"], category="network")
    talk.assistant(f"I opened ticket {ticket}. An engineer looks at it within two days.")
    talk.user("Please write there that it is worst in the evening.")
    talk.call("add_ticket_note", f"Note added to {ticket}.", ticket_id=ticket, note="worst in the evening")
    talk.assistant("Noted.")


def _device(talk: Transcript, customer: _Rest, line: _Rest, rest: _Rest) -> None:  # noqa: ARG001
    device = line["device"]
    talk.user(f"Could it be the phone itself? It's a {device['model']}.", "Can you check the phone's network settings?")
    talk.call(
        "get_details_by_id",
        {**device, "last_esim_transfer_date": None, "mobile_data": "on", "apn": "internet"},
        id=device["device_id"],
    )
    talk.assistant(f"The settings of your {device['model']} look right. I could reset its eSIM.")
    talk.user("Please do that.")
    talk.call("reset_esim", "eSIM reset.", device_id=device["device_id"], imei=device["imei"])
    talk.assistant("It is reset.")
