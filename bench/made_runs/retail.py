"""A shop's desk: users, orders of several items, products of many variants; exchanges, returns, new addresses."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.made_runs.transcript import Transcript, digits, listed, shown

_SYSTEM: Final = "You are the desk of an online shop. Confirm who the user is, and ask before you change anything."
_FIRST: Final = ("Lena", "Tomas", "Priya", "Hugo", "Mei", "Amara", "Jonas", "Nadia", "Felix", "Ivy")
_LAST: Final = ("Okafor", "Lindqvist", "Moreau", "Tanaka", "Alvarez", "Novak", "Haddad", "Byrne", "Costa", "Weiss")
_STREETS: Final = ("Birch Street", "Harbor Road", "Mill Lane", "Station Avenue", "Willow Court", "King Drive")
_CITIES: Final = (
    ("Portland", "OR"), ("Tucson", "AZ"), ("Columbus", "OH"), ("Austin", "TX"), ("Albany", "NY"), ("Fresno", "CA"),
)  # fmt: skip
_PRODUCTS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "Desk Lamp": {
        "color": ("black", "white", "brass"),
        "power": ("battery", "USB", "AC adapter"), "light": ("warm", "cold"),
    },
    "Backpack": {
        "color": ("navy", "grey", "green", "black"),
        "size": ("small", "medium", "large"), "material": ("nylon", "canvas"),
    },
    "Headphones": {
        "type": ("in-ear", "over-ear"),
        "connection": ("wireless", "wired"), "color": ("red", "blue", "black"),
    },
    "Kettle": {"capacity": ("1L", "1.5L", "2L"), "material": ("glass", "steel"), "color": ("black", "silver")},
    "Running Shoes": {
        "size": ("8", "9", "10", "11"),
        "color": ("white", "yellow", "black"), "sole": ("rubber", "foam"),
    },
    "Office Chair": {
        "material": ("mesh", "leather", "fabric"),
        "armrest": ("fixed", "adjustable"), "height": ("standard", "high"),
    },
    "Jigsaw Puzzle": {
        "pieces": ("500", "1000", "2000"),
        "theme": ("animals", "art", "maps"), "level": ("beginner", "expert"),
    },
}  # fmt: skip
_REASONS: Final = ("no longer needed", "ordered by mistake")


@dataclass(frozen=True, slots=True)
class _Shop:
    products: dict[str, dict[str, Any]]
    user: dict[str, Any]
    user_id: str
    orders: list[dict[str, Any]]


def run(draw: random.Random, name: str) -> dict[str, Any]:
    """One run: identify the user and their orders, then fulfil two or three wishes, one after the other."""
    shop = _shop(draw)
    talk = Transcript(_SYSTEM, draw)
    first, second, *_ = shop.orders
    wishes = [_exchange, _return, _address, _cancel, _modify, _default_address]
    draw.shuffle(wishes)
    chosen = wishes[: draw.choice((2, 3))]
    talk.user(
        f"Hi, I have some trouble with order {first['order_id']}.",
        "Hello, I need some help with things that I bought recently.",
        f"Hi there! I'd like to change my {first['items'][0]['name'].lower()} order, and one thing more.",
    )
    _greet(talk, shop)
    orders = [first, second]
    for number, wish in enumerate(chosen):
        wish(talk, shop, orders[number % 2])
        if number + 1 < len(chosen):
            talk.assistant("Is there anything else I can help you with?", "That is done. What else can I do for you?")
    talk.user("No, that's all. Thank you!", "That is everything, thanks.")
    talk.assistant("You're welcome. Have a nice day!")
    return talk.row(name)


def _shop(draw: random.Random) -> _Shop:
    products = {title: _product(draw, title, options) for title, options in _PRODUCTS.items()}
    first, last = draw.choice(_FIRST), draw.choice(_LAST)
    user_id = f"{first}_{last}_{digits(draw, 4)}".lower()
    cards = [f"{kind}_{digits(draw, 7)}" for kind in draw.sample(("credit_card", "paypal", "gift_card"), 2)]
    address = _address_of(draw)
    orders = [_order(draw, user_id, products, address, draw.choice(cards)) for _ in range(draw.choice((2, 3)))]
    user = {
        "name": {"first_name": first, "last_name": last},
        "address": address,
        "email": f"{first}.{last}{digits(draw, 4)}@example.com".lower(),
        "payment_methods": {card: _card(draw, card) for card in cards},
        "orders": [order["order_id"] for order in orders],
    }
    return _Shop(products, user, user_id, orders)


def _card(draw: random.Random, card: str) -> dict[str, Any]:
    if card.startswith("credit"):
        return {"source": "credit_card", "brand": "visa", "last_four": digits(draw, 4), "id": card}
    return {"source": card.rpartition("_")[0], "id": card} | ({"balance": 80} if card.startswith("gift") else {})


def _address_of(draw: random.Random) -> dict[str, str]:
    city, state = draw.choice(_CITIES)
    return {
        "address1": f"{digits(draw, 3)} {draw.choice(_STREETS)}",
        "address2": f"Suite {digits(draw, 3)}",
        "city": city,
        "country": "USA",
        "state": state,
        "zip": digits(draw, 5),
    }


def _product(draw: random.Random, title: str, options: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    variants: dict[str, Any] = {}
    while len(variants) < 9:
        chosen = {key: draw.choice(values) for key, values in options.items()}
        if chosen not in [one["options"] for one in variants.values()]:
            item = digits(draw, 10)
            price = round(draw.uniform(20, 400), 2)
            is_there = draw.random() < 0.8
            variants[item] = {"item_id": item, "options": chosen, "available": is_there, "price": price}
    return {"name": title, "product_id": digits(draw, 10), "variants": variants}


def _order(
    draw: random.Random, user_id: str, products: Mapping[str, Any], address: Mapping[str, str], card: str
) -> dict[str, Any]:
    bought = [products[title] for title in draw.sample(sorted(products), draw.choice((1, 2, 3)))]
    items = []
    for product in bought:
        variant = draw.choice(list(product["variants"].values()))
        kept = {key: variant[key] for key in ("item_id", "price", "options")}
        items.append({"name": product["name"], "product_id": product["product_id"], **kept})
    return {
        "order_id": f"#W{digits(draw, 7)}",
        "user_id": user_id,
        "address": dict(address),
        "items": items,
        "fulfillments": [{"tracking_id": [digits(draw, 12)], "item_ids": [item["item_id"] for item in items]}],
        "status": draw.choice(("pending", "delivered")),
        "payment_history": [
            {"transaction_type": "payment", "amount": sum(i["price"] for i in items), "payment_method_id": card}
        ],
    }


def _greet(talk: Transcript, shop: _Shop) -> None:
    name, draw = shop.user["name"], talk.draw
    talk.assistant("Happy to help. May I have your email, or your name and zip code?")
    if draw.random() < 0.5:
        talk.user(f"It's {shop.user['email']}.")
        talk.call("find_user_id_by_email", shop.user_id, email=shop.user["email"])
    else:
        zip_code = shop.user["address"]["zip"]
        talk.user(f"{name['first_name']} {name['last_name']}, {zip_code}.")
        talk.call("find_user_id_by_name_zip", shop.user_id, **name, zip=zip_code)
    talk.call("get_user_details", shop.user, user_id=shop.user_id)
    for order in shop.orders[: draw.choice((2, len(shop.orders)))]:
        talk.call("get_order_details", order, order_id=order["order_id"])
    order_lines = [f"{order['order_id']} ({order['status']}): {_named(order)}" for order in shop.orders[:2]]
    talk.assistant(
        f"Thank you, {name['first_name']}. What would you like to do?",
        f"Thank you, {name['first_name']}. I see these orders:\n\n{listed(order_lines)}\n\nWhich one is it about?",
    )


def _named(order: Mapping[str, Any]) -> str:
    return ", ".join(item["name"] for item in order["items"])


def _swap(talk: Transcript, shop: _Shop, order: Mapping[str, Any], verb: str, tool: str) -> None:
    item = talk.draw.choice(order["items"])
    product = shop.products[item["name"]]
    others = [one for one in product["variants"].values() if one["available"] and one["item_id"] != item["item_id"]]
    wanted = talk.draw.choice(others)
    key = talk.draw.choice(list(wanted["options"]))
    talk.user(
        f"I want to {verb} the {item['name'].lower()} for one with {key} {wanted['options'][key]}. What is there?",
        f"Can you {verb} my {item['name'].lower()}? I'd rather have {wanted['options'][key]}.",
    )
    talk.call("get_product_details", product, product_id=product["product_id"])
    near = [one for one in others if one["options"][key] == wanted["options"][key]]
    variants = [f"{shown(one['options'])}, ${one['price']}" for one in near]
    talk.assistant(
        f"These are available:\n\n{listed(variants)}\n\nWhich one, and how should the difference be paid?",
        f"There are {len(near)} that fit:\n\n{listed(variants)}\n\nPlease choose one and a payment method.",
    )
    card = talk.draw.choice(list(shop.user["payment_methods"]))
    kind = card.rpartition("_")[0].replace("_", " ")
    talk.user(f"The {' '.join(wanted['options'].values())} one. Use my {kind} please.")
    talk.assistant(
        f"To confirm, for order {order['order_id']}: {item['name']} to the new one at ${wanted['price']}, difference on"
        f" your {kind}. Shall I go on (yes/no)?"
    )
    talk.user("Yes, please.", "Yes, go ahead.")
    arguments = {"item_ids": [item["item_id"]], "new_item_ids": [wanted["item_id"]], "payment_method_id": card}
    talk.call(
        tool, {"order_id": order["order_id"], "status": f"{verb} requested"}, order_id=order["order_id"], **arguments
    )


def _exchange(talk: Transcript, shop: _Shop, order: Mapping[str, Any]) -> None:
    _swap(talk, shop, order, "exchange", "exchange_delivered_order_items")


def _modify(talk: Transcript, shop: _Shop, order: Mapping[str, Any]) -> None:
    _swap(talk, shop, order, "change", "modify_pending_order_items")


def _return(talk: Transcript, shop: _Shop, order: Mapping[str, Any]) -> None:  # noqa: ARG001 - one shape for all
    gone = talk.draw.sample(order["items"], talk.draw.choice(range(1, len(order["items"]) + 1)))
    talk.user(f"I'd like to return the {' and the '.join(item['name'].lower() for item in gone)}.")
    card = order["payment_history"][0]["payment_method_id"]
    talk.assistant(f"The refund would go to your {card.rpartition('_')[0].replace('_', ' ')}. Is that right?")
    talk.user("Yes.", "Yes, that's right.")
    talk.call(
        "return_delivered_order_items",
        {"order_id": order["order_id"], "status": "return requested"},
        order_id=order["order_id"],
        item_ids=[item["item_id"] for item in gone],
        payment_method_id=card,
    )


def _address(talk: Transcript, shop: _Shop, order: Mapping[str, Any]) -> None:
    if talk.draw.random() < 0.5:
        new, address_words = shop.user["address"], "the address in my profile"
    else:
        new = _address_of(talk.draw)
        address_words = f"{new['address1']}, {new['address2']}, {new['city']}, {new['state']} {new['zip']}"
    talk.user(
        f"Please send order {order['order_id']} to {address_words}.",
        f"Change the address of my {_named(order)} to {address_words}.",
    )
    talk.assistant(f"Order {order['order_id']} would go to {new['address1']} in {new['city']}. Is that right?")
    talk.user("Yes, correct.")
    talk.call(
        "modify_pending_order_address",
        {"order_id": order["order_id"], "address": new},
        order_id=order["order_id"],
        **new,
    )


def _default_address(talk: Transcript, shop: _Shop, order: Mapping[str, Any]) -> None:
    talk.user(
        f"And please make the address of order {order['order_id']} my default one.", "Update my profile's address too."
    )
    talk.assistant(
        f"Your profile would then say {order['address']['address1']}, {order['address']['city']}. Yes or no?"
    )
    talk.user("Yes.")
    talk.call("modify_user_address", "done", user_id=shop.user_id, **order["address"])


def _cancel(talk: Transcript, shop: _Shop, order: Mapping[str, Any]) -> None:  # noqa: ARG001 - one shape for all
    reason = talk.draw.choice(_REASONS)
    talk.user(
        f"I want to cancel the order with the {_named(order).lower()}, it was {reason}.", "Cancel that order please."
    )
    talk.assistant(f"I can cancel {order['order_id']} with the reason '{reason}'. Shall I?")
    talk.user("Yes, cancel it.")
    talk.call(
        "cancel_pending_order",
        {"order_id": order["order_id"], "status": "cancelled"},
        order_id=order["order_id"],
        reason=reason,
    )
