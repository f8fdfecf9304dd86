"""One verification from end to end, with the real clients of two providers, before scripted servers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import pytest

from app.core.validation.claims import claims_of
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.verification.judging import digest_text
from tests.gemini_server import KEY, Gemini
from tests.integration.services import Service, versions
from tests.integration.test_detailing import MODEL, compacted, registry, segments, with_models
from tests.openai_server import OpenAI, running_openai

OPENAI = "openai-responses:gpt-5"
OTHER = "google:gemini-2.5-pro"
QUOTE = "Mrs Keller gets the wood"


@pytest.fixture
async def service(begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini) -> AsyncIterator[Service]:
    models = registry(gemini)
    yield with_models(Service(begin, tenant), models, worker_concurrency=4)
    await models.close()


def against(*numbers: int, quote: str = QUOTE) -> dict[str, Any]:
    told = [{"n": n, "verdict": "contradicted", "seq": 11, "quote": quote} for n in numbers]
    return {"name": "text", "text": json.dumps({"verdicts": told})}


class TestGemini:
    async def test_it_answers_for_every_claim(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        assert await service.container.verification.work(conversation_id) == "verified"
        (call,) = gemini.requests("verification")
        (version,) = await versions(service, conversation_id)
        config = call["body"]["generationConfig"]
        assert version.verification is not None
        assert (version.verified, version.verification.model) == ("model", MODEL)
        assert version.verification.supported == version.verification.claims > 0
        assert version.verification.usage.input_tokens > 0
        assert "verdicts" in config["responseJsonSchema"]["properties"]
        assert config["thinkingConfig"]["thinking_level"] == "LOW"
        assert config["maxOutputTokens"] == 2_048 + 100 * version.verification.claims

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("chosen", [OTHER, None])
    async def test_the_policys_model_judges_and_without_one_the_summarizers(
        self, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini, chosen: str | None
    ) -> None:
        models = registry(gemini, allowed=[OTHER])
        service = with_models(Service(begin, tenant), models, worker_concurrency=4)
        conversation_id, _ = await compacted(service, verifier_model=chosen)
        assert await service.container.verification.work(conversation_id) == "verified"
        (written,), (call,) = gemini.requests("compaction"), gemini.requests("verification")
        (version,) = await versions(service, conversation_id)
        assert version.verification is not None
        asked = chosen or MODEL
        assert (call["model"], version.verification.model) == (asked.removeprefix("google:"), asked)
        assert written["model"] == MODEL.removeprefix("google:")
        await models.close()

    async def test_what_it_proves_goes(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        (before,) = await versions(service, conversation_id)
        gemini.script("verification", against(1))
        assert await service.container.verification.work(conversation_id) == "changed"
        after = (await versions(service, conversation_id))[-1]
        first = next(entry for entry in before.entries if entry.role != "narrative")
        assert [entry.id for entry in after.entries if entry.pruned and entry.text == first.text] == [first.id]
        assert [(one.reason, one.before, one.after) for one in after.repairs] == [("contradicted", first.text, None)]

    async def test_a_digest_that_a_message_contradicts_is_told_by_code(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        count = len(await claimed(service, conversation_id))
        told = await segments(service, conversation_id)
        gemini.script("verification", against(count))
        assert await service.container.verification.work(conversation_id) == "changed"
        after = await segments(service, conversation_id)
        assert [one.levels["L2"].made_by for one in after] == [MODEL, MODEL, "extractive"]
        assert after[2].levels["L3"].made_by == "extractive"
        assert after[:2] == told[:2]
        assert after[2].levels["L2"].text != told[2].levels["L2"].text
        first, second = await versions(service, conversation_id)
        assert first.entries == second.entries
        assert [one.field for one in second.repairs] == ["segments"]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("behaviour", "outcome"),
        [
            ("safety", "failed"),
            ("cut", "verified"),
            ("error_500", "failed"),
            ("tool_call", "failed"),
            ("empty", "failed"),
        ],
    )
    async def test_what_goes_wrong_changes_nothing(
        self, service: Service, gemini: Gemini, behaviour: str, outcome: str
    ) -> None:
        conversation_id, _ = await compacted(service)
        (before,) = await versions(service, conversation_id)
        gemini.script("verification", default=behaviour)
        assert await service.container.verification.work(conversation_id) == outcome
        (after,) = await versions(service, conversation_id)
        assert len(gemini.requests("verification")) == (3 if behaviour == "cut" else 1), "in halves, once"
        assert (after.state, after.entries, after.layout) == (before.state, before.entries, before.layout)


async def claimed(service: Service, conversation_id: UUID) -> list[str]:
    """The claims about the newest version, in the order of their future numbers."""
    (version,) = await versions(service, conversation_id)
    digests = [told for one in await segments(service, conversation_id) if (told := digest_text(one))]
    return [claim.text for claim in claims_of((), version.entries, digests=digests, repairs=version.repairs)]


class TestOpenAI:
    @pytest.fixture
    def openai(self) -> Iterator[OpenAI]:
        with running_openai() as openai:
            yield openai

    @pytest.mark.long
    async def test_it_answers_for_every_claim_and_nothing_is_kept_there(
        self, begin: UnitOfWorkFactory, tenant: UUID, openai: OpenAI
    ) -> None:
        models = ModelRegistry(
            chat=OPENAI, compaction=OPENAI, keys=Keys(openai_api_key="key", openai_base_url=openai.url)
        )
        service = with_models(Service(begin, tenant), models)
        conversation_id, row = await compacted(service)
        assert row.status == "applied"
        assert await service.container.verification.work(conversation_id) == "verified"
        body = openai.asked[-1].body
        version = (await versions(service, conversation_id))[-1]
        assert version.verification is not None
        assert version.verification.supported == version.verification.claims > 0
        assert body["store"] is False
        assert body["reasoning"]["effort"] == "low"
        assert "verdicts" in body["text"]["format"]["schema"]["properties"]
        await models.close()

    @pytest.mark.long
    async def test_it_judges_what_gemini_wrote_if_the_policy_says_so(
        self, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini, openai: OpenAI
    ) -> None:
        keys = Keys(google_api_key=KEY, google_base_url=gemini.url, openai_api_key="key", openai_base_url=openai.url)
        models = registry(gemini, keys=keys, allowed=[OPENAI])
        service = with_models(Service(begin, tenant), models)
        conversation_id, row = await compacted(service, verifier_model=OPENAI)
        assert await service.container.verification.work(conversation_id) == "verified"
        version = (await versions(service, conversation_id))[-1]
        assert version.verification is not None
        assert (row.model, version.verification.model) == (MODEL, OPENAI)
        assert (len(openai.asked), gemini.requests("verification")) == (1, [])
        await models.close()
