"""Data of media in every form that clients use: plain Base64, in lines, for addresses, and in data URLs."""

from __future__ import annotations

import base64
import tracemalloc
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import pytest
from pydantic_ai.messages import BinaryContent, UserPromptPart

from app.core.context.formats import in_format
from app.core.context.media import parts_within_bytes
from app.core.model.model_io import ContextMessage
from app.core.text.contents import (
    data_bytes,
    detached_contents,
    from_data_url,
    inline_base64,
    named_address,
    shown_address,
)
from app.core.text.parts import Part
from app.core.text.token_counts import estimate_text, weigh
from app.http.openai.content import ChatImage, ImageUrl, stored_content
from app.providers.messages import to_provider

BYTES: Final = bytes(range(251)) * 3 + b"\xff\xfb\xef?>"
PLAIN: Final = base64.b64encode(BYTES).decode()
URL: Final = f"data:image/png;base64,{PLAIN}"
PERCENT: Final = f"data:image/png,{quote(BYTES)}"

GIVEN: Final = [
    pytest.param({"data": PLAIN}, id="plain"),
    pytest.param({"data": base64.encodebytes(BYTES).decode()}, id="in lines, as mail has it"),
    pytest.param({"data": base64.urlsafe_b64encode(BYTES).decode()}, id="for addresses"),
    pytest.param({"data": base64.urlsafe_b64encode(BYTES).decode().rstrip("=")}, id="for addresses, bare of padding"),
    pytest.param({"data": URL}, id="a data URL"),
    pytest.param({"data": URL.replace("data:", "DATA:")}, id="in capitals"),
    pytest.param({"data": f"data:image/png;base64,{quote(PLAIN, safe='')}"}, id="Base64 with escapes"),
    pytest.param({"data": PERCENT}, id="percent-encoded"),
    pytest.param({"url": URL}, id="in the place of the address"),
    pytest.param({"url": PERCENT}, id="percent-encoded in the place of the address"),
]
NO_DATA: Final = [
    pytest.param({"data": "some text"}, id="words that would be data without their blank"),
    pytest.param({"data": "?"}, id="no sign of Base64"),
    pytest.param({"data": ""}, id="nothing"),
    pytest.param({"data": "data:image/png;base64,?"}, id="a data URL with something else"),
    pytest.param({"data": "data:image/png"}, id="a data URL without data"),
    pytest.param({"url": "https://example.org/x.png"}, id="an address"),
    pytest.param({"data": {"sha256": "0" * 64, "bytes": 3}}, id="a reference that was not loaded"),
]


def image(**given: Any) -> Part:
    return {"type": "media", "media_type": "image/png", **given}


def asked(part: Part) -> list[ContextMessage]:
    return [ContextMessage(role="user", content="Look.", parts=(part,))]


def sent(part: Part, *, takes_media: bool = True) -> list[Any]:
    """What a chat model is sent for a message with this part."""
    (request,) = to_provider(asked(part), lambda _: takes_media)
    (prompt,) = request.parts
    assert isinstance(prompt, UserPromptPart)
    return list(prompt.content)


@pytest.mark.parametrize("given", GIVEN)
def test_data_reach_models_as_data_in_whatever_form_they_were_given(given: dict[str, Any]) -> None:
    part = image(**given)

    assert sent(part)[1:] == [BinaryContent(data=BYTES, media_type="image/png")]
    (block,) = in_format(asked(part), "anthropic").messages[0]["content"][1:]
    assert block["source"] == {"type": "base64", "media_type": "image/png", "data": PLAIN}


@pytest.mark.parametrize("given", NO_DATA)
def test_what_is_no_data_is_told_in_words(given: dict[str, Any]) -> None:
    part = image(**given)

    assert inline_base64(part) is None
    assert all(isinstance(piece, str) for piece in sent(part))
    assert all(block["type"] == "text" for block in in_format(asked(part), "anthropic").messages[0]["content"])


@pytest.mark.parametrize("given", [{"url": URL}, {"url": "data:image/png;base64,?"}, {"data": URL}])
def test_words_for_media_never_hold_their_data(given: dict[str, Any]) -> None:
    assert sent(image(**given), takes_media=False) == ["Look.", "[attached: image/png]"]
    assert named_address(image(**given)) == ""
    assert named_address(image(url="https://example.org/x.png")) == "https://example.org/x.png", "the control"


def test_data_in_the_place_of_an_address_count_towards_the_room_for_media() -> None:
    part = image(url=URL)
    messages = asked(part)

    assert data_bytes(part) == len(URL)
    assert parts_within_bytes(messages, len(URL), "en") == [(part,)]
    ((told,),) = parts_within_bytes(messages, len(URL) - 1, "en")
    assert told["type"] == "text"
    assert data_bytes(image(url="https://example.org/x.png")) == 0


@pytest.mark.parametrize("data", [PLAIN * 1_000, f"data:application/pdf;base64,{PLAIN * 1_000}", "x y" * 90_000])
def test_a_document_weighs_the_same_with_its_data_and_with_a_reference(data: str) -> None:
    whole: Part = {"type": "media", "media_type": "application/pdf", "data": data}
    (stored,), _ = detached_contents((whole,))

    assert isinstance(stored["data"], dict)
    assert weigh("user", "", (stored,)) == weigh("user", "", (whole,))
    page: Part = {"type": "media", "media_type": "application/pdf", "data": PLAIN}
    assert weigh("user", "", (stored,)).tokens > weigh("user", "", (page,)).tokens, "the control: by its length"


def test_a_media_is_shown_to_clients_under_one_address() -> None:
    assert shown_address(image(data=PLAIN)) == URL
    assert shown_address(image(data=URL)) == URL, "one head, not two"
    assert shown_address(image(url="https://example.org/x.png")) == "https://example.org/x.png"
    assert shown_address({"type": "media", "data": PLAIN}) == f"data:application/octet-stream;base64,{PLAIN}"


def test_the_door_of_openai_stores_plain_base64() -> None:
    def stored(url: str) -> Part:
        _, (part,) = stored_content([ChatImage(type="image_url", image_url=ImageUrl(url=url))])
        return part

    assert stored(PERCENT) == stored(URL) == image(data=PLAIN)
    assert stored("https://example.org/x.png") == image(url="https://example.org/x.png")
    for broken in ("data:image/png;base64,?", "data:image/png", "data:image/png;base64,"):
        with pytest.raises(ValueError, match="a data URL must hold Base64"):
            stored(broken)


def test_a_data_url_without_a_type_has_none() -> None:
    assert from_data_url("data:,hi%20there") == ("", base64.b64encode(b"hi there").decode())
    assert from_data_url("data:text/plain;charset=utf-8;base64,aGk=") == ("text/plain", "aGk=")


def test_media_weigh_by_their_kind_and_words_by_their_length() -> None:
    beside = weigh("user", "").tokens
    assert weigh("user", "", (image(data=PERCENT * 20),)).tokens - beside == 1_120
    assert weigh("user", "", ({"type": "text", "text": PERCENT},)).tokens - beside == estimate_text(PERCENT) > 1_120


@pytest.mark.daily(1)
@pytest.mark.parametrize("shift", range(4))
def test_many_escapes_are_decoded_and_take_little_memory(shift: int) -> None:
    given = "x" * shift + "%41%c3%A9" * 100_000 + "%4"
    tracemalloc.start()
    _, found = from_data_url(f"data:image/png,{given}")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == base64.b64encode(unquote_to_bytes(given)).decode()
    assert most < 10 * len(given)


@pytest.mark.long
def test_control_the_standard_library_takes_much_memory_for_them() -> None:
    given = "%41%c3%A9" * 100_000
    tracemalloc.start()
    unquote_to_bytes(given)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most > 10 * len(given)
