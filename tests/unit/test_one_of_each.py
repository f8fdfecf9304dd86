"""Each reading of a text has one implementation: its patterns are looked for by what they do, functions by their names.

A pattern is known by what it finds in a sample, whatever it looks like. What does the same for another reason is listed
with that reason; a list that names what is gone fails too.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import app.core
from app.core.text.patterns import known
from app.core.text.technologies import RIVALS

ROOT: Final = Path(app.core.__path__[0])


def says_who_speaks(pattern: re.Pattern[str]) -> bool:
    """Whether the pattern fits any name with its colon, and nothing more."""
    found = [pattern.match(f"{name}: we met at noon") for name in ("Anna", "Boris", "Мария")]
    return [match.end() if match else 0 for match in found] == [6, 7, 7]


def ends_sentences(pattern: re.Pattern[str]) -> bool:
    """Whether it finds the ends of sentences, but not those of clauses."""
    text = "We met, at last; in May. They left! Who was it? Nobody"
    return [match.start() for match in pattern.finditer(text)] == [23, 34, 46]


def takes_words(pattern: re.Pattern[str]) -> bool:
    """Whether it finds all words of a text, also those with a capital."""
    said = "Anna met boris last noon"
    return [match.group() for match in pattern.finditer(said)] == said.split()


def parts_clauses(pattern: re.Pattern[str]) -> bool:
    """Whether it finds the marks between clauses, with the blank after them."""
    text = "we met, they left; nobody saw"
    return [text[match.end() :] for match in pattern.finditer(text)] == ["they left; nobody saw", "nobody saw"]


def tells_names(pattern: re.Pattern[str]) -> bool:
    """Whether it finds only words with a capital; what it matches outside its groups it only passes over."""
    text = "yesterday we met Anna Petrova and also Boris at a bar in Oslo for an hour"
    matches = (match for match in pattern.finditer(text) if match.lastgroup or not pattern.groupindex)
    found = [word for match in matches for word in match.group().split()]
    return found == ["Anna", "Petrova", "Boris", "Oslo"]


def tells_what_goes(pattern: re.Pattern[str]) -> bool:
    """Whether it finds what a sentence gives up, and has a named group for it."""
    texts = ("We take MySQL instead of Postgres", "We no longer use Postgres", "Мы берём MySQL вместо Postgres")
    found = [pattern.search(text) for text in texts]
    tells = all(match is not None and "Postgres" in match.groups() for match in found)
    return tells and not pattern.search("We use Postgres")


def hears_corrections(pattern: re.Pattern[str]) -> bool:
    """Whether it finds that a sentence corrects something, whatever that is."""
    corrects = ("I changed my mind, MySQL", "Actually, let's use MySQL", "На самом деле MySQL")
    plain = ("We use MySQL", "We really walked to Graz with MTS-12", "Анна взяла синюю машину")
    return all(map(pattern.search, corrects)) and not any(map(pattern.search, plain))


def finds_days(pattern: re.Pattern[str]) -> bool:
    """Whether it finds a named day of a month, and no other words."""
    text = "we met on 12 March 2026 at noon in Oslo"
    found = [match.group() for match in pattern.finditer(text) if match.lastgroup or not pattern.groupindex]
    return any(one.startswith("12 March") for one in found) and "met" not in " ".join(found)


def begins_letters(pattern: re.Pattern[str]) -> bool:
    """Whether it fits the head of a quoted letter, but not a speaker's name or a day."""
    others = ("Anna: we met", "From Anna", "2026-11-19", "x", "We met")
    return all(map(pattern.match, ("From: Anna", "Subject: x"))) and not any(map(pattern.match, others))


IDEAS: Final[dict[str, tuple[Callable[[re.Pattern[str]], bool], str, dict[str, str]]]] = {
    "who speaks": (
        says_who_speaks,
        "app.core.text.speakers",
        {"app.core.reading.tool_data_lines": "a record's name: three words and more, of letters and digits"},
    ),
    "where a sentence ends": (ends_sentences, "app.core.text.sentences", {}),
    "words": (
        takes_words,
        "app.core.text.words",
        {
            "app.core.reading.tool_data_lines": "parts of the key of a record, at its underscores too",
            "app.core.reading.logs": "ids, paths and addresses of a log, each as a whole",
            "app.core.reading.scoring": "ids, paths and addresses that were talked of, each as a whole",
            "app.core.context.turn_options": "a tool's name, no word",
            "app.core.text.language": "runs of one script",
            "app.core.text.token_counts": "runs of letters by which a model's tokens are estimated",
            "app.core.state.erasing": "the first letters and digits of an exact value, by which it is looked for",
            "app.core.segments.topics": "the marks between words too: no term goes over them",
        },
    ),
    "where a clause ends": (
        parts_clauses,
        "app.core.text.clauses",
        {"app.core.reading.tool_data_lines": "the fields of a record"},
    ),
    "names": (
        tells_names,
        "app.core.text.identifiers",
        {
            "app.core.retrieval.question_completion": "who is called by name: capitals alone do not tell",
        },
    ),
    "days as they are written": (finds_days, "app.core.text.identifiers", {}),
    "heads of letters": (begins_letters, "app.core.text.pasted", {}),
    # in these two, text.cue_patterns compiles what anchors.topics and reading.cues list
    "what is given up": (tells_what_goes, "app.core.text.cue_patterns", {}),
    "a correction": (hears_corrections, "app.core.text.cue_patterns", {}),
}
"""For each idea, what its patterns do, the one module that has them, and others that do the same for another reason."""

GONE: Final = {
    "who speaks": r"([^\W\d_][\w.'’-]{0,23}(?: [^\W\d_][\w.'’-]{0,23})?: )",
    "where a sentence ends": r"[.!?…]['\"”’»)\]]*\s+|[。！？]|[\r\n]+",
    "words": r"[^\W\d_]+",
    "where a clause ends": r"(?<=[;:，；。、—–])\s?|(?<=[^\d],)\s",
    "names": r"(?<![\w'’])[A-Z][a-z]+(?:[ -][A-Z][a-z]+){0,3}",
    "days as they are written": r"\b\d{1,2} (?:March|April|May)(?: \d{4})?",
    "heads of letters": r"[ \t]*(?:From|To|Subject): ",
    "what is given up": r"(?:instead of|вместо|no longer use) (\S+)",
    "a correction": r"\bactually\b|\bchanged my mind\b|(?i:на самом деле)|\bActually\b",
}
"""The control: for each idea, a pattern that another module once had."""

SPEAKING: Final = re.compile(r"_?(?:spoken_)?language(?:_(?:of|in|or)\w*)?|_?detect(?:_|ed_)?language")
LANGUAGE: Final = {
    ("model/provenance.py", "language_of"): "the one",
    ("model/provenance.py", "language_or_locale"): "the one, with the locale where it cannot tell",
    ("model/model_io.py", "language"): "the one, asked once for a chunk",
    (
        "text/stemming.py",
        "language_of",
    ): "by whose stems question and texts are compared: by function words alone",
    ("text/language.py", "language_of_locale"): "no text: the language in the name of a locale",
    (
        "retrieval/offline_responder.py",
        "_language_of_answer",
    ): "the words of a reply: a question of a few words, told by its letters alone",
}


@cache
def places() -> dict[re.Pattern[str], str]:
    """Every pattern of the core, with the module that has it."""
    for module in pkgutil.walk_packages(app.core.__path__, "app.core."):
        importlib.import_module(module.name)
    found = {one.pattern: one.place.partition(":")[0] for one in known().values()}
    return {pattern: place for pattern, place in found.items() if place.startswith("app.core")}


def having(does: Callable[[re.Pattern[str]], bool], patterns: Iterable[re.Pattern[str]]) -> list[re.Pattern[str]]:
    return [pattern for pattern in patterns if does(pattern)]


@pytest.mark.parametrize("idea", IDEAS)
def test_one_module_has_the_patterns_of_an_idea(idea: str) -> None:
    does, home, others = IDEAS[idea]
    assert {places()[pattern] for pattern in having(does, places())} == {home, *others}


@pytest.mark.parametrize("idea", IDEAS)
def test_control_a_second_pattern_is_found_and_that_of_another_idea_is_not(idea: str) -> None:
    does, _, _ = IDEAS[idea]
    planted = {re.compile(source): name for name, source in GONE.items()}
    assert [planted[pattern] for pattern in having(does, planted)] == [idea]


DECIDING: Final = re.compile(
    r"_?(?:replaces|contradicts|supersedes|outdates|makes_untrue|names_what_goes|names_alternative|differs_in_one_class"
    r"|updates_one_value|is_about_another_thing|is_of_another|restates_with_new_value|replaces_anchor|gives_up)"
)
"""Names of functions that decide whether the later one of two texts replaces the earlier one."""

ASKING_THE_ENGINE: Final = {
    "anchors/transitions.py": "_replaces_anchor",
    "state/supersession.py": "_outdates",
}
NO_PAIR_OF_TEXTS: Final = {("model/claims.py", "gives_up"): "whether a claim is of that kind"}


FUNCTION: Final = re.compile(r"^[ \t]*def (\w+)", re.MULTILINE)


def deciders_in(source: str) -> list[str]:
    return [name for name in FUNCTION.findall(source) if DECIDING.fullmatch(name)]


def test_one_module_tells_what_takes_the_place_of_what() -> None:
    """The other modules with such a function ask this one."""
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    found = {(name, one) for name, source in sources.items() for one in deciders_in(source)}
    home = {one for one in found if one[0] == "anchors/replacement.py"}
    assert len(home) > 5
    assert found - home == {*ASKING_THE_ENGINE.items(), *NO_PAIR_OF_TEXTS}
    assert all("replaces(" in sources[name] for name in ASKING_THE_ENGINE)
    planted = "def _contradicts(new, old): ...\ndef replaced_by(one): ...\n"
    assert deciders_in(planted) == ["_contradicts"], "control"


LISTING_MONTHS: Final = {
    "text/cldr_names.py": "in which languages the files list none",
    "text/tables.py": "the one: of all languages",
    "text/identifiers.py": "of languages that tell a month before its day",
}


def test_months_of_the_files_are_read_by_one_module() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if lists_months(path.read_text("utf-8"))}
    assert found == set(LISTING_MONTHS)
    assert lists_months("for number, words in one.values.months"), "control"
    assert lists_months('_MONTHS = alternatives("exact", "months")'), "control"


def lists_months(source: str) -> bool:
    return re.search(r"\bvalues\.months\b|alternatives\([^)]*months", source) is not None


def languages_in(source: str) -> list[str]:
    """The names of a module's functions that tell a language."""
    return [name for name in FUNCTION.findall(source) if SPEAKING.fullmatch(name)]


def test_one_function_tells_which_language_is_spoken() -> None:
    files = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert {(name, one) for name, source in files.items() for one in languages_in(source)} == set(LANGUAGE)
    planted = "class Reading:\n    def _language(self): ...\ndef language_of(messages): ...\ndef language_rule(): ...\n"
    assert sorted(languages_in(planted)) == ["_language", "language_of"], "control"


def test_languages_of_several_messages_are_told_in_one_module_only() -> None:
    """Other modules tell the language of one text, never of messages that were joined for it."""
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if joined(path.read_text("utf-8"))}
    assert found == {"retrieval/offline_responder.py"}, "the context, where the question has no word"
    assert joined('told = detect("\\n".join(message.content for message in messages))'), "control"


def joined(source: str) -> bool:
    return re.search(r"\bdetect\(\s*\"\\n\"\.join\((?:message|one|spoken)", source) is not None


def test_one_function_tells_a_question() -> None:
    found = {
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if tells_question(path.read_text("utf-8"))
    }
    assert found == {"text/sentences.py"}
    assert tells_question('return text.rstrip().endswith("?")'), "control"


def tells_question(source: str) -> bool:
    return re.search(r"endswith\((?:_QUESTIONS|[^\n]{0,20}[?？])", source) is not None


LISTING_RIVALS: Final = {"model/secret_shapes.py": "schemes of addresses that hold a password"}


def test_rivals_are_listed_in_the_files_of_languages_only() -> None:
    """Names of technologies that replace each other; formats and protocols are also endings of files and schemes."""
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if lists_rivals(path.read_text("utf-8"))}
    assert found == set(LISTING_RIVALS)
    assert lists_rivals('_DATABASES = frozenset("postgres mysql mariadb".split())'), "control"
    assert lists_rivals('_QUEUES = {"kafka", "rabbitmq", "nats"}'), "control"


def lists_rivals(source: str) -> bool:
    kinds = [names for kind, names in RIVALS.items() if kind not in {"format", "protocol", "language"}]
    written = set(re.findall(r"\w+", source))
    if not any(len(names & written) > 2 for names in kinds):
        return False
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        " ".join(one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))
        for node in ast.walk(tree)
        if isinstance(node, (ast.Constant, ast.Set, ast.List, ast.Tuple)) and id(node) not in told
    ]
    return any(len(names & set(re.findall(r"\w+", text))) > 2 for text in texts for names in kinds)


def test_one_module_scores_by_bm25() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if scores_words(path.read_text("utf-8"))}
    assert found == {"retrieval/bm25.py"}
    assert scores_words("rarity = math.log(1 + (total - found + 0.5) / (found + 0.5))"), "control"
    assert scores_words("score = weight * count * (_K1 + 1) / (count + length)"), "control"


def scores_words(source: str) -> bool:
    return re.search(r"\+ 0\.5\) / \(\w+ \+ 0\.5\)|\(_?\w+ \+ 1\) / \(\w+ \+", source) is not None


SPENDING: Final = {
    "continuity/statements.py": {"block_statements": "characters: the line that crosses the bound is cut"},
    "planning/cuts.py": {"_index_before_last_tokens": "the fewest messages that weigh at least so much, not at most"},
    "retrieval/recall_use.py": {"_bounded_passages": "characters: the passage that crosses the bound is cut"},
    "segments/digests.py": {
        "_steps": "ends once mere markers have no room, and keeps steps that may be lighter than they",
        "_steps_within": "a better line takes the place of a shorter one, and the frame is lighter once all are shown",
    },
    "segments/extractive.py": {"add": "a term that an earlier one says already takes no room"},
    "state/shrinking.py": {"_chosen_entries": "what repeats comes last; words of a record never without its id"},
    "state/statement_removal.py": {"_news_and_older_in_turn": "two lists by turns, whatever the room"},
    "summarizer/offline/files.py": {
        "_fitting_and_other_files": "what is not told in full is named: it takes room all the same"
    },
    "text/file_types.py": {"_object_streams": "bytes of a file that are unpacked"},
}
"""Loops outside the module of budgets that spend a budget, each with its reason."""


def test_one_module_chooses_within_a_budget() -> None:
    found = {path.relative_to(ROOT).as_posix(): spending(path.read_text("utf-8")) for path in ROOT.rglob("*.py")}
    home = {"text/budget.py": {"without_last"}}
    assert {name: functions for name, functions in found.items() if functions} == home | {
        name: set(reasons) for name, reasons in SPENDING.items()
    }


CONTROLS: Final = (
    """
def packed(order, costs, room):
    for rank, place in enumerate(order):
        if rank == 0 or costs[place] <= room:
            room -= costs[place]
            yield place
""",
    """
def within(self, items, room):
    kept = []
    for item in items:
        self.left -= item.tokens
        if self.left < 0:
            break
        kept.append(item)
    return kept
""",
    """
def rows(weights, most):
    return sum(total <= most for total in accumulate(weights))
""",
    """
def first(texts, room):
    return [text for text in texts if (room := room - estimate_text(text)) >= 0]
""",
    """
def newest(messages, most):
    used = 0
    while messages and used + messages[-1].size <= most:
        used += messages.pop().size
    return messages
""",
)


@pytest.mark.parametrize("source", CONTROLS)
def test_control_a_second_chooser_is_found(source: str) -> None:
    assert len(spending(source)) == 1
    assert not spending("def total(texts):\n    size = 0\n    for text in texts:\n        size += len(text)\n")


def spending(source: str) -> set[str]:
    """The functions that spend a budget in a loop, or that count how many sums fit into it."""
    functions = (one for one in ast.walk(ast.parse(source)) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {one.name for one in functions if counts_sums(one) or any(map(spends, loops_of(one)))}


def loops_of(function: ast.AST) -> Iterable[ast.AST]:
    return (node for node in ast.walk(function) if isinstance(node, LOOPS))


LOOPS: Final = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def counts_sums(function: ast.AST) -> bool:
    nodes = list(ast.walk(function))
    sums = any(isinstance(node, ast.Call) and ast.unparse(node.func).endswith("accumulate") for node in nodes)
    return sums and any(isinstance(node, ast.GeneratorExp) and isinstance(node.elt, ast.Compare) for node in nodes)


def spends(loop: ast.AST) -> bool:
    """Whether the loop subtracts a weight from a number, or adds it, and compares that number."""
    nodes = list(ast.walk(loop))
    weighed = {changed for node in nodes if (changed := changed_by(node)) and WEIGHT.search(ast.unparse(node))}
    orders = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    compared = [node for node in nodes if isinstance(node, ast.Compare) and isinstance(node.ops[0], orders)]
    return not weighed.isdisjoint(ast.unparse(part) for node in compared for part in ast.walk(node))


def changed_by(node: ast.AST) -> str:
    """The name that a step adds to or subtracts from; empty for other steps."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        return ast.unparse(node.target)
    if isinstance(node, (ast.Assign, ast.NamedExpr)) and isinstance(node.value, ast.BinOp):
        target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        return target if target in {ast.unparse(node.value.left), ast.unparse(node.value.right)} else ""
    return ""


WEIGHT: Final = re.compile(r"token|weight|cost|size|spent|used|room|left|excess")


def test_one_module_asks_for_the_best_by_now() -> None:
    """The options are kept in a heap, and their worth falls while others are taken."""
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if has_heap(path.read_text("utf-8"))}
    assert found == {"text/budget.py"}
    assert has_heap("import heapq\n"), "control"


def has_heap(source: str) -> bool:
    return re.search(r"\b(?:heapq|sortedcontainers|PriorityQueue)\b", source) is not None


SENTENCES: Final = {
    "segments/message_analysis.py": "the levels of a segment, chosen by ``segments/extractive.py``",
    "summarizer/offline/extractive.py": "the digest of what a context leaves out",
    "summarizer/offline/facts.py": "the facts of a state, beside those that it holds (``earlier_entries``)",
}


def test_whoever_weighs_sentences_has_them_chosen_by_one_chooser() -> None:
    """An extractive summary weighs sentences and takes the best, but does not score or compare them itself."""
    sources = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in ROOT.rglob("*.py")}
    assert {name for name, source in sources.items() if calls(source, "score_all")} == set(SENTENCES)
    for name in {*SENTENCES, "segments/extractive.py"} - {"segments/message_analysis.py"}:
        assert calls(sources[name], "choose") or calls(sources[name], "EarlierEntries"), name
    defined = {
        name for name, source in sources.items() if re.search(r"^def (?:choose|score_all)\(", source, re.MULTILINE)
    }
    assert defined == {"reading/choice.py", "reading/scoring.py"}


def calls(source: str, name: str) -> bool:
    if f"{name}(" not in source:  # to parse all of the core takes seconds
        return False
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(isinstance(node.func, ast.Name) and node.func.id == name for node in nodes)


def test_control_a_call_is_found() -> None:
    assert calls("worths = score_all(passages)", "score_all")
    assert not calls("from scoring import score_all", "score_all")


SPELLING: Final = {
    "segments/topics.py": "the one: what a stretch is about",
    "text/speakers.py": "how often a role names itself how",
}


def test_one_module_tells_what_a_conversation_is_about() -> None:
    """Key phrases are counted by their stems, and told in their most frequent spelling."""
    found = {
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if counts_spellings(path.read_text("utf-8"))
    }
    assert found == set(SPELLING)
    assert counts_spellings("spelled: defaultdict[str, Counter[str]] = defaultdict(Counter)"), "control"
    assert counts_spellings("spelled = {base: Counter(words) for base, words in by_base}"), "control"


def counts_spellings(source: str) -> bool:
    return re.search(r"defaultdict\(Counter\)|\w+: Counter\(", source) is not None


CUTTING: Final = {
    "context/tools.py": "a part of a text, behind which stands how much is missing",
    "segments/digests.py": "a marker, which weighs more than its text",
}


def test_one_module_cuts_a_text_to_so_few_tokens() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if cuts(path.read_text("utf-8"))}
    assert found == {"text/shortening.py", *CUTTING}
    assert cuts("    while estimate_text(text) > room:\n        text = clip(text, int(len(text) * 0.8))\n"), "control"


def cuts(source: str) -> bool:
    return re.search(r"while [^\n]*estimate_text\([^\n]*\n(?:[^\n]*\n)?[^\n]*(?:clip\(|\[:)", source) is not None


READING_JSON: Final = {
    "text/json_data.py": "the one",
    "text/parts.py": "whether a text is a value's JSON: nothing is made of it",
    "anchors/likelihood.py": "a file of ours",
    "model/policies/resolving.py": "what was stored of a policy",
    "continuity/statements.py": "a state block that was just written",
    "retrieval/passage_search.py": "a state block, and what stands behind it",
    "validation/verdicts.py": "a verifier's array, as far as it goes where it was cut off",
}


def test_one_module_reads_json_from_outside() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if reads_json(path.read_text("utf-8"))}
    assert found == set(READING_JSON)
    assert reads_json("    arguments = json.loads(arguments)\n"), "control"
    assert reads_json("_READER = json.JSONDecoder(strict=False)"), "control"


def reads_json(source: str) -> bool:
    return re.search(r"\bjson\.loads?\(|\bJSONDecoder\(|\bfrom_json\(", source) is not None
