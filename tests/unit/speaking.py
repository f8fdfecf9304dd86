"""The results of the core for a talk in Esperanto, from a process of its own, since a process reads languages once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from app.core.anchors.detect import detect as anchors_of
from app.core.model.doubt_marks import with_doubt_marks
from app.core.model.model_io import SummaryRequest
from app.core.model.policies.goals import states_goal
from app.core.model.schemas import SESSION
from app.core.reading.cues import ACCEPTANCE, cues_of
from app.core.reading.labels import role_label
from app.core.reading.quoting import as_quotation
from app.core.retrieval.question import question_of
from app.core.summarizer.offline.extractive import compress
from app.core.summarizer.prompt_rules import language_rule, size_of
from app.core.text.clauses import clause_starts
from app.core.text.identifiers import identifiers
from app.core.text.language import detect
from app.core.text.languages.loading import languages
from app.core.text.relative import date_note
from app.core.text.sentences import sentences
from app.core.text.supposing import is_supposed
from app.core.text.technologies import RIVALS
from app.core.text.values import values
from app.core.validation.excuses import is_excuse
from app.core.validation.orders import orders_in
from tests.unit.talk import START, entry, message, talk

DECISION = "Ni decidis uzi verdan koverton por ĉiuj invitoj."
APPOINTMENT = "Ĝi estas je la 12 majo 2027 kaj ĝi daŭros kvardek du horojn."
LATER = (
    "Mia fratino volas inviti ankaŭ niajn najbarojn, ĉar ili helpis pri la ĝardeno kaj la domo.",
    "Tio estas bona ideo, sed la salono havas lokon por nur malmultaj homoj.",
    "La najbaroj portos siajn proprajn seĝojn, kaj ni sidos ekstere sub la granda arbo.",
    "Bone, tiam ni bezonas nur pli da manĝaĵo kaj iom da muziko por la vespero.",
)
YESTERDAY = "Hieraŭ ni vizitis malnovan muzeon kun mia fratino."


def heard() -> dict[str, Any]:
    """What the core recognises, and what it writes."""
    spoken = talk(DECISION, "Bone, kaj kiam estas nia kunveno?", APPOINTMENT, "Dankon, tio estas en ordo.", *LATER)
    return {
        "known": [one.code for one in languages()],
        "language": detect(" ".join(one.content for one in spoken)),
        "anchors": [[one.type, one.content] for one in anchors_of(message(1, DECISION))],
        "values": [[value.kind, value.text, value.amount] for value in values(APPOINTMENT)],
        "day": date_note(START.date(), YESTERDAY),
        "cues": sorted(cues_of(DECISION)),
        "accepts": ACCEPTANCE.search("Konsentite.") is not None,
        "goal": states_goal("Mia celo estas lerni kuiri."),
        "orders": orders_in("Vi devas ĉiam obei."),
        "months": sorted(question_of("kio okazis en majo?", frozenset()).months),
        "sentences": len(sentences("Hieraŭ venis inĝ. Zamenhof kaj parolis.")),
        "clauses": clause_starts("ni restas ĉar pluvas"),
        "supposed": is_supposed("Verŝajne la servilo dormas."),
        "refusal": is_excuse("Mi ne povas helpi pri tio."),
        "exact": identifiers("ni havas 12 horojn, do Lundo sufiĉas"),
        "database": "poŝtgreso" in RIVALS["database"],
        "quoted": as_quotation(DECISION, "user", "eo"),
        "role": role_label("user", "eo"),
        "in doubt": with_doubt_marks([replace(entry("F1", f"{DECISION} {APPOINTMENT}"), in_doubt=True)])[0],
        "rule": [language_rule("eo"), size_of(100, "eo")],
        "state": json.loads(compress(SummaryRequest(schema=SESSION, messages=spoken))),
    }
