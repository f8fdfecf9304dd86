"""Measures retention: whether early statements are still served after one, three, five and ten compactions.

``python -m bench.retention [--write]`` plays made-up conversations (English, Russian, Chinese): facts, decisions,
artefacts (paths, ids, addresses) and next steps in the first messages, then talk of other things. They are compacted as
a whole again and again by the offline model. It counts whether the important exact words of each statement are still

* in the state block alone (state and anchors, without a question), and
* in a context of ``BUDGET`` tokens for a question about it, where recall brings originals back.

As a control it counts the same after everything that was compacted is forgotten.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from bench import measurements
from bench.recall_talks import WINDOW, context, corpus_in, material_of
from bench.replay import EVERYTHING, Replay
from bench.report import write_json

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "fidelity.md"
ROUNDS: Final = (1, 3, 5, 10)
BUDGET: Final = 1_500
"""Tokens of a context with a question."""
BETWEEN: Final = 40
"""Messages of other talk before each compaction."""
_SEED: Final = 20261120
_NAMES: Final = ("Ivo Brandt", "Lena Okafor", "Petr Havel", "Noor Haddad", "Sam Reyes", "Yuki Mori")

Kind = Literal["fact", "decision", "artefact", "next step"]
KINDS: Final[tuple[Kind, ...]] = ("fact", "decision", "artefact", "next step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An early statement: its words, those of them that must survive verbatim, and a question about it."""

    kind: Kind
    text: str
    exact: tuple[str, ...]
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A conversation to play: its statements, and the other talk."""

    language: str
    opening: str
    statements: tuple[Statement, ...]
    subjects: tuple[str, ...]
    remarks: tuple[str, ...]
    """Texts of other talk, with ``{0}`` and ``{1}`` for subjects."""
    facts: tuple[str, ...]
    """The same with ``{2}`` for a number and ``{3}`` for a name: these compete for the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Whether a statement survived so many compactions."""

    language: str
    kind: Kind
    compactions: int
    busy: bool
    """Whether the other talk also has many exact values."""
    served: bool
    recalled: bool
    control: bool
    """Whether it is served although everything compacted was forgotten: the check found it by chance."""


def _statement(kind: Kind, text: str, exact: str, question: str) -> Statement:
    return Statement(kind=kind, text=text, exact=tuple(exact.split("|")), question=question)


SCRIPTS: Final = (
    Script(
        language="en",
        opening="Hi, I run the billing platform of a small shipping company and want to plan the migration with you.",
        statements=(
            _statement(
                "fact",
                "Our customer number with the carrier is KD-48213.",
                "KD-48213",
                "Which customer number do we have with the carrier?",
            ),
            _statement(
                "fact",
                "The invoices database holds 2,417 accounts and lives in Rotterdam.",
                "2,417|Rotterdam",
                "How many accounts does the invoices database hold, and where?",
            ),
            _statement(
                "fact",
                "Marta Lindqvist is the auditor, her limit is $18,500 per month.",
                "Marta Lindqvist|$18,500",
                "Who is the auditor and what is the limit?",
            ),
            _statement(
                "decision",
                "We decided to use PostgreSQL 16 instead of Oracle for the ledger.",
                "PostgreSQL 16",
                "Which database did we choose for the ledger?",
            ),
            _statement(
                "decision",
                "Let's go with weekly releases on Tuesdays, not daily ones.",
                "weekly|Tuesdays",
                "How often and on which day do we release?",
            ),
            _statement(
                "decision",
                "I chose the blue-green rollout over a canary.",
                "blue-green",
                "Which kind of rollout did I choose?",
            ),
            _statement(
                "artefact",
                "The export script is tools/export_ledger.py and its log goes to /var/log/ledger/export.log.",
                "tools/export_ledger.py|/var/log/ledger/export.log",
                "Where are the export script and its log?",
            ),
            _statement(
                "artefact",
                "The ticket for it is BILL-2093, the dashboard is https://grafana.example.com/d/ledger.",
                "BILL-2093|https://grafana.example.com/d/ledger",
                "What are the ticket and the dashboard?",
            ),
            _statement(
                "artefact",
                "The run that failed has the id 7f3c2a10-55d1-4b7e-9c64-0d2f8a61b3ce.",
                "7f3c2a10-55d1-4b7e-9c64-0d2f8a61b3ce",
                "What is the id of the run that failed?",
            ),
            _statement(
                "next step",
                "Next I will ask Marta to sign the data agreement by 14 March.",
                "14 March",
                "By when should the data agreement be signed?",
            ),
            _statement(
                "next step",
                "After that you should draft the rollback plan for the harbour office.",
                "rollback plan|harbour office",
                "What should be drafted next, and for which office?",
            ),
            _statement(
                "next step",
                "We still need to rotate the key of the staging bucket before Friday.",
                "staging bucket|Friday",
                "What still has to be rotated, and before when?",
            ),
        ),
        subjects=(
            "the weather",
            "a walking tour",
            "the new canteen",
            "an old film",
            "the football match",
            "gardening",
            "a crossword",
            "the train strike",
            "a birthday cake",
            "the neighbour's dog",
            "a board game",
            "the museum",
            "a recipe for soup",
            "the choir",
            "bicycle lanes",
        ),
        remarks=(
            "I was thinking about {0} again, it reminds me of {1}.",
            "People talk a lot about {0} these days.",
            "That sounds nice. What do you like most about {0}?",
            "Honestly, {0} is more fun than {1} when there is time for it.",
            "Somebody told me a story about {0} and {1} yesterday.",
            "Good point, {0} can be surprising.",
        ),
        facts=(
            "{3} paid ${2} for {0} last month.",
            "We need {2} chairs for {0}, {3} will bring them.",
            "{3} decided to move {0} to room {2}.",
            "My new number for {0} is 555-{2}, ask for {3}.",
        ),
    ),
    Script(
        language="ru",
        opening="Здравствуйте, я веду склад небольшой транспортной компании и хочу обсудить переезд системы.",
        statements=(
            _statement(
                "fact",
                "Номер нашего договора с перевозчиком: ТК-48213.",
                "ТК-48213",
                "Какой номер у договора с перевозчиком?",
            ),
            _statement(
                "fact",
                "На складе в Казани хранится 2417 поддонов.",
                "2417",
                "Сколько поддонов хранится на складе в Казани?",
            ),
            _statement(
                "decision",
                "Мы решили использовать PostgreSQL 16 вместо Oracle.",
                "PostgreSQL 16",
                "Какую базу данных мы решили использовать?",
            ),
            _statement(
                "decision",
                "Остановимся на выпусках по вторникам, а не каждый день.",
                "вторникам",
                "По каким дням мы выпускаем обновления?",
            ),
            _statement(
                "artefact",
                "Скрипт выгрузки лежит в tools/export_sklad.py, задача называется SKLAD-2093.",
                "tools/export_sklad.py|SKLAD-2093",
                "Где лежит скрипт выгрузки и как называется задача?",
            ),
            _statement(
                "next step",
                "Дальше я попрошу Марту подписать соглашение до 14 марта.",
                "14 марта",
                "До какого числа надо подписать соглашение?",
            ),
            _statement(
                "next step",
                "Нужно ещё сменить ключ тестового хранилища до пятницы.",
                "пятницы",
                "До какого дня надо сменить ключ хранилища?",
            ),
        ),
        subjects=(
            "погода",
            "прогулка",
            "новая столовая",
            "старый фильм",
            "футбольный матч",
            "сад",
            "кроссворд",
            "забастовка",
            "пирог",
            "соседская собака",
            "настольная игра",
            "музей",
            "суп",
            "хор",
        ),
        remarks=(
            "Я снова вспоминаю, какая была {0}, и ещё {1}.",
            "В последнее время все обсуждают одно: {0}.",
            "Звучит приятно. Что вам больше нравится: {0} или {1}?",
            "Честно говоря, {0} веселее, чем {1}.",
            "Вчера мне рассказывали историю: {0} и {1}.",
        ),
        facts=(
            "{3} заплатил {2} рублей в прошлом месяце, тема: {0}.",
            "Нужно {2} стульев, их привезёт {3}, повод: {0}.",
            "{3} решил перенести встречу в комнату {2}, тема: {0}.",
        ),
    ),
    Script(
        language="zh",
        opening="你好，我负责一家小型运输公司的仓库系统，想和你讨论迁移的事。",
        statements=(
            _statement("fact", "我们和承运商的合同编号是 KD-48213。", "KD-48213", "我们和承运商的合同编号是多少？"),
            _statement("fact", "鹿特丹仓库里有 2417 个托盘。", "2417", "鹿特丹仓库里有多少个托盘？"),
            _statement(
                "decision", "我们决定使用 PostgreSQL 16，而不是 Oracle。", "PostgreSQL 16", "我们决定使用哪个数据库？"
            ),
            _statement(
                "artefact",
                "导出脚本在 tools/export_stock.py，任务编号是 CK-2093。",
                "tools/export_stock.py|CK-2093",
                "导出脚本在哪里，任务编号是什么？",
            ),
            _statement("next step", "接下来我会请玛尔塔在 3月14日 之前签协议。", "3月14日", "协议要在什么时候之前签？"),
        ),
        subjects=(
            "天气",
            "散步",
            "新食堂",
            "老电影",
            "足球比赛",
            "花园",
            "填字游戏",
            "罢工",
            "生日蛋糕",
            "邻居的狗",
            "桌游",
            "博物馆",
            "汤",
        ),
        remarks=(
            "我又想起了{0}，还有{1}。",
            "最近大家都在谈论{0}。",
            "听起来不错。你喜欢{0}还是{1}？",
            "说实话，{0}比{1}有意思。",
            "昨天有人给我讲了{0}和{1}的故事。",
        ),
        facts=("{3} 上个月为{0}付了 {2} 元。", "{0}需要 {2} 把椅子，由 {3} 带来。", "{3} 决定把{0}改到 {2} 号房间。"),
    ),
)


def outcomes(script: Script, rounds: Sequence[int] = ROUNDS, *, busy: bool = False) -> Iterator[Outcome]:
    """Play a script, and check after each of these numbers of compactions."""
    draw = random.Random(_SEED)
    replay = Replay.in_window(WINDOW)
    replay.say("user", script.opening)
    replay.say("assistant", script.remarks[1].format(*draw.sample(script.subjects, 2)))
    for statement in script.statements:
        replay.say("user", statement.text)
        replay.say("assistant", script.remarks[1].format(*draw.sample(script.subjects, 2)))
    for done in range(1, max(rounds) + 1):
        for number in range(BETWEEN):
            subjects = draw.sample(script.subjects, 2)
            form = draw.choice(script.facts if busy and number % 2 == 0 else script.remarks)
            remark = form.format(*subjects, draw.randint(100, 9_999), draw.choice(_NAMES))
            replay.say("assistant" if number % 2 else "user", remark)
        replay.fold(EVERYTHING)
        if done in rounds:
            yield from _looked(script, replay, done, busy=busy)


def _looked(script: Script, replay: Replay, done: int, *, busy: bool) -> Iterator[Outcome]:
    block = replay.block()
    material, corpus = material_of(replay), corpus_in(replay)
    held = "\n".join(message.content for message in (*replay.held(), *replay.tail()))
    for statement in script.statements:
        found = context(material, corpus, statement.question, BUDGET)
        served_text = "\n".join(message.content for message in found.messages[1:])
        yield Outcome(
            language=script.language,
            kind=statement.kind,
            compactions=done,
            busy=busy,
            served=all(value in block for value in statement.exact),
            recalled=all(value in served_text for value in statement.exact),
            control=all(value in held for value in statement.exact),
        )


def table(found: Sequence[Outcome]) -> str:
    """A table by kind and language: served in the state block, and by recall, after each number of compactions."""
    numbers = sorted({one.compactions for one in found})
    head = " | ".join(f"{number}: block | recall" for number in numbers)
    lines = [f"| | stated | {head} |", "|---|---:|" + "---:|" * (2 * len(numbers))]
    groups: list[tuple[str, list[Outcome]]] = [(kind, [one for one in found if one.kind == kind]) for kind in KINDS]
    languages = dict.fromkeys(one.language for one in found)
    groups += [(language, [one for one in found if one.language == language]) for language in languages]
    groups.append(("all", list(found)))
    for name, rows in groups:
        cells = itertools.chain.from_iterable(
            (_share([one.served for one in at]), _share([one.recalled for one in at]))
            for number in numbers
            for at in [[one for one in rows if one.compactions == number]]
        )
        lines.append(f"| {name} | {len(rows) // len(numbers)} | {' | '.join(cells)} |")
    control = _share([one.control for one in found])
    return "\n".join([*lines, "", f"Control, with everything forgotten that was compacted: {control}."])


def _share(hits: Sequence[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.0f} %" if hits else "–"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put the table into ``docs/fidelity.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.retention", description="Retention of what was said early.")
    parser.add_argument("--write", action="store_true", help="into docs/fidelity.md")
    asked = parser.parse_args(arguments)
    found = [one for busy in (False, True) for script in SCRIPTS for one in outcomes(script, busy=busy)]
    text = "\n\n".join(
        [
            "Small talk between the compactions:",
            table([one for one in found if not one.busy]),
            "Talk full of other amounts, names and decisions between them:",
            table([one for one in found if one.busy]),
        ]
    )
    print(text)
    write_json("retention", [asdict(one) for one in found])
    if asked.write:
        measurements.write("retention", text, PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
