"""Places in a JSON schema, for errors that say what may stand there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Node = Mapping[str, Any]
Place = Sequence[str | int]
"""The steps to a value: names of fields, and numbers of items."""


def nodes_at(schema: Node, place: Place) -> list[Node]:
    """The parts of a schema that describe this place; none where it has no such place."""
    nodes = list(_alternatives(schema, schema))
    for step in place:
        children = [child for node in nodes for child in _children(node, step)]
        nodes = [deeper for child in children for deeper in _alternatives(child, schema)]
    return nodes


def names_at(schema: Node, place: Place) -> list[str]:
    """The fields that an object at this place has."""
    return [name for node in nodes_at(schema, place) for name in node.get("properties", ())]


def _children(node: Node, step: int | str) -> list[Node]:
    child = node.get("items") if isinstance(step, int) else node.get("properties", {}).get(step)
    return [child] if child is not None else []


def _alternatives(node: Node, schema: Node) -> Iterator[Node]:
    if "$ref" in node:
        yield from _alternatives(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    elif "anyOf" in node:
        for choice in node["anyOf"]:
            yield from _alternatives(choice, schema)
    else:
        yield node
