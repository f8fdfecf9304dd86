"""What the API prints if it needs a key and there is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.bootstrap import Container
from app.http.lifespan import StartRefusedError, refuse_to_be_open
from app.settings import Settings


class NoKeys:
    async def any(self) -> bool:
        return False


def keyless(**fields: Any) -> Container:
    return cast("Container", SimpleNamespace(settings=Settings.model_construct(**fields), keys=NoKeys()))


@pytest.mark.parametrize(
    ("fields", "why", "otherwise"),
    [
        ({"host": "127.0.0.1"}, "DATABASE_URL", "set THROUGHLINE_AUTH_REQUIRED=false on a development machine."),
        ({"host": "10.0.0.1", "embedded": True}, "HOST is 10.0.0.1", "use `make run` with HOST=127.0.0.1."),
        ({"host": "10.0.0.1", "auth_required": False}, "HOST is 10.0.0.1", "use `make run` with HOST=127.0.0.1."),
        ({"host": "127.0.0.1", "embedded": True, "auth_required": True}, "_REQUIRED", "leave that setting out on a"),
    ],
)
async def test_the_advice_fits_what_asks_for_a_key(fields: dict[str, Any], why: str, otherwise: str) -> None:
    with pytest.raises(StartRefusedError) as raised:
        await refuse_to_be_open(keyless(**fields))
    told, advice = str(raised.value).split(": create a key with `throughline keys create`, or ")
    assert told.startswith("No API key exists, and ")
    assert why in told
    assert advice.startswith(otherwise)


async def test_what_is_advised_lets_it_start() -> None:
    await refuse_to_be_open(keyless(host="127.0.0.1", auth_required=False))
    await refuse_to_be_open(keyless(host="127.0.0.1", embedded=True))
