"""What the client sends with every POST, and the typed error for a level that cannot be made."""

from __future__ import annotations

from app.client import InvalidInputError
from app.client.calls import ignore_body, post
from app.client.endpoints import compact, interrupt, retry_compaction
from app.client.errors import error_of


def test_a_post_without_a_body_is_json_all_the_same() -> None:
    for call in (post("/x", ignore_body), interrupt("a"), retry_compaction("a"), compact("a")):
        assert (call.headers["Content-Type"], call.body) == ("application/json", b"{}")


def test_what_is_not_folded_is_an_invalid_input_with_its_code_and_segments() -> None:
    segments = [{"segment_id": "auth", "from_seq": 1, "to_seq": 9}]
    error = error_of(422, {"code": "not_folded", "detail": "d", "segments": segments})
    assert isinstance(error, InvalidInputError)
    assert (error.code, error.problem["segments"]) == ("not_folded", segments)
