"""Embedding models through the real clients, before a scripted server that speaks their wire formats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from app.core.model.embedding import BadVectorsError, unpacked_vector
from app.core.model.errors import InvalidInputError, ModelUnavailableError
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.usecases.ports import Embedder
from tests.embedding_server import DIMENSIONS, EmbeddingServer, running_embeddings

GEMINI, OPENAI = "google:gemini-embedding-001", "openai:text-embedding-3-small"
TEXTS = ("The cat sleeps.", "Bread, and more bread.")
FAULTS: list[tuple[dict[str, Any], str, bool]] = [
    ({"status": 429}, "rate_limited", True),
    ({"status": 503}, "server_error", True),
    ({"status": 401}, "unauthorized", False),
    ({"hang": 5.0}, "timeout", True),
    ({"drop": 1}, "bad_vectors", True),
    ({"ragged": True}, "bad_vectors", True),
    ({"nan": True}, "bad_vectors", True),
]


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddingServer]:
    with running_embeddings() as server:
        yield server


@pytest.fixture
def server(running: EmbeddingServer) -> EmbeddingServer:
    running.reset()
    return running


def registry_of(server: EmbeddingServer, model: str, **given: Any) -> ModelRegistry:
    return ModelRegistry(
        keys=Keys(
            google_api_key="key", google_base_url=server.url, openai_api_key="key", openai_base_url=f"{server.url}/v1"
        ),
        embedding=model,
        **{"compaction_timeout": 10.0, "question_timeout": 10.0} | given,
    )


@pytest.fixture(params=[GEMINI, OPENAI])
async def registry(request: pytest.FixtureRequest, server: EmbeddingServer) -> AsyncIterator[ModelRegistry]:
    made = registry_of(server, request.param, failures_to_open=2)
    await made.prepare()
    yield made
    await made.close()


def embedder_in(registry: ModelRegistry) -> Embedder:
    found = registry.embedder()
    assert found is not None
    return found


async def test_each_text_has_its_vector_of_unit_length_in_order(
    registry: ModelRegistry, server: EmbeddingServer
) -> None:
    found = await embedder_in(registry).embed(TEXTS, "document")
    cat, bread = (unpacked_vector(vector) for vector in found.vectors)
    assert len(cat) == len(bread) == DIMENSIONS
    assert cat[1] == pytest.approx(4 / 17**0.5)
    assert bread[1] == 0
    assert bread[3] == pytest.approx(8 / 65**0.5)
    assert found.usage.input_tokens > 4, "estimated where the provider does not say"
    (asked,) = server.asked
    told = asked.get("requests", [asked])
    if "requests" in asked:
        assert asked["path"].endswith(":batchEmbedContents")
        assert {one["taskType"] for one in told} == {"RETRIEVAL_DOCUMENT"}
    else:
        assert asked["input"] == list(TEXTS)


async def test_a_question_is_told_apart_where_the_model_can() -> None:
    with running_embeddings() as server:
        registry = registry_of(server, GEMINI, embedding_dimensions=16)
        embedder = embedder_in(registry)
        found = await embedder.embed(["Where is the ship?"], "query")
        await registry.close()
    assert embedder.name == f"{GEMINI}@16"
    assert [len(unpacked_vector(vector)) for vector in found.vectors] == [16]
    (asked,) = server.asked
    (one,) = asked.get("requests", [asked])
    assert (one["taskType"], one["outputDimensionality"]) == ("RETRIEVAL_QUERY", 16)


@pytest.mark.daily(4)
@pytest.mark.parametrize(("fault", "reason", "retryable"), FAULTS)
async def test_a_fault_is_a_word_of_ours_and_the_next_call_works(
    registry: ModelRegistry, server: EmbeddingServer, fault: dict[str, Any], reason: str, *, retryable: bool
) -> None:
    embedder = embedder_in(registry)
    if "hang" in fault:
        registry._embedding_timeouts["document"] = 0.3
        embedder = embedder_in(registry)
    server.script.append(fault)
    with pytest.raises(ModelUnavailableError) as raised:
        await embedder.embed(TEXTS, "document")
    assert (raised.value.reason, raised.value.retryable) == (reason, retryable)
    assert "cat" not in repr(raised.value.__dict__)
    assert raised.value.__cause__ is None
    assert len(server.asked) == 1, "nothing is repeated in here"
    assert len((await embedder.embed(TEXTS, "document")).vectors) == 2


@pytest.mark.parametrize("fault", [{"dimensions": 8}, {"null": True}], ids=["dimensions", "null"])
async def test_wrong_vectors_are_no_answer(server: EmbeddingServer, fault: dict[str, Any]) -> None:
    registry = registry_of(server, OPENAI, embedding_dimensions=16)
    server.script.append(fault)
    with pytest.raises(BadVectorsError, match="bad_vectors") as raised:
        await embedder_in(registry).embed(TEXTS, "document")
    assert raised.value.usage.input_tokens > 0, "it was paid for"
    await registry.close()


async def test_outages_open_the_circuit_of_their_kind_alone(registry: ModelRegistry, server: EmbeddingServer) -> None:
    embedder = embedder_in(registry)
    server.script.extend([{"status": 503}, {"status": 503}])
    for _ in range(2):
        with pytest.raises(ModelUnavailableError, match="server_error"):
            await embedder.embed(TEXTS[:1], "query")
    with pytest.raises(ModelUnavailableError, match="circuit_open"):
        await embedder_in(registry).embed(TEXTS[:1], "query")
    assert len(server.asked) == 2
    assert (await embedder.embed(TEXTS, "document")).vectors


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gemini-embedding-001", "is named 'provider:model'"),
        ("google:gemini-embedding-001", "set GOOGLE_API_KEY"),
        ("openai:text-embedding-3-small", "set OPENAI_API_KEY"),
        ("voyageai:voyage-4", r"pydantic-ai-slim\[voyageai\]"),
        ("sentence-transformers:any", "THROUGHLINE_AMBIENT_CREDENTIALS"),
        ("nobody:any", "no model provider"),
    ],
)
async def test_a_model_that_cannot_be_built_says_why(name: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        await ModelRegistry(embedding=name).prepare()


def test_without_the_setting_there_is_none() -> None:
    assert ModelRegistry().embedder() is None
