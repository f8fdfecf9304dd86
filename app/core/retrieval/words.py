"""What questions ask for and what answers look like, by language, as data: another language is another row."""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.core.text.patterns import compiled

ENGLISH_TIME: Final = frozenset(
    """yesterday today tomorrow tonight last next ago week weeks weekend weekends month months year years recently
        since january february march april may june july august september october november december monday tuesday
        wednesday thursday friday saturday sunday""".split()
)
COMMON_SIGNS: Final = frozenset(
    "的了着过得地之其所是在有和与及或而但就也都很还又再才只没不吗呢吧啊呀嘛哦么什怎样为以从到把被给让对我你您他她它们这那"
    "哪谁几多少一个些来去上下里中会能可要想说用做"
)
"""Signs of Chinese that are function words, or parts of so many words that they say nothing alone."""

ENGLISH_FIRST_PERSON: Final = frozenset("i my me we our i'm i've i'd i'll we're we've".split())
ENGLISH_SECOND_PERSON: Final = frozenset("you your yours you're you've you'll".split())


def _any(words: frozenset[str]) -> str:
    """A pattern for these words, whichever apostrophe they are written with."""
    return rf"\b(?:{'|'.join(sorted(words, key=lambda word: (-len(word), word)))})\b".replace("'", "['’]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Patterns of one language; each is searched in lower case, an empty one never matches."""

    when: str = ""
    who: str = ""
    where: str = ""
    title: str = ""
    how_many: str = ""
    time: str = ""
    """Words by which a message says when something was."""
    people: str = ""
    place: str = ""
    number: str = ""
    first_person: str = ""
    second_person: str = ""
    told: str = ""
    """What a question says of what the assistant said before."""
    user: str = ""
    assistant: str = ""
    """What a question about a conversation calls its two sides."""
    hello: str = ""
    """What stands before the name of who is spoken to."""
    called: str = ""
    """What stands before the speaker's own name."""
    months: tuple[str, ...] = ()
    """Twelve stems, January first; a word begins with one of them."""


LANGUAGES: Final[Mapping[str, Language]] = {
    "en": Language(
        when=r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow long\b",
        who=r"\bwhom?\b|\bwhose\b",
        where=r"\bwhere\b|\b(?:what|which) (?:city|country|place|state|town)\b",
        title=(
            r"\b(?:books?|movies?|films?|songs?|games?|titles?|names?|called|shows?|series|bands?|artists?|authors?"
            r"|programs?|apps?|brands?)\b"
        ),
        how_many=r"\bhow (?:many|much|old|long|often|far|tall|big)\b",
        time=_any(ENGLISH_TIME) + r"|\b\d{4}\b",
        people=(
            r"\b(?:mom|dad|mother|father|sister|brother|wife|husband|friend|son|daughter|kid|family|cousin|aunt|uncle"
            r"|partner|boyfriend|girlfriend|boss|team|colleague|neighbou?r)s?\b"
        ),
        place=r"\b(?:in|at|to|from|near) (?:the )?\^",
        number=r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|couple|few|dozen|once|twice|first|second)\b",
        first_person=_any(ENGLISH_FIRST_PERSON),
        second_person=_any(ENGLISH_SECOND_PERSON),
        told=(
            r"\byou\b.{0,16}\b(?:said|told|recommend\w*|suggest\w*|mention\w*|gave|given|list\w*|explain\w*|wrote"
            r"|written|provid\w*|propos\w*|advis\w*|describ\w*|creat\w*|generat\w*|answered|quot\w*|calculat\w*)\b"
            r"|\b(?:did|have|had) you\b.{0,16}\b(?:tell|say|give|write)\b"
            r"|\byour (?:\w+ )?(?:answer|suggestion|recommendation|list|advice|response|reply|explanation)s?\b"
        ),
        user=r"\bthe (?:user|customer|client|caller)\b",
        assistant=r"\b(?:the|did the|an) (?:assistant|agent|ai|bot|chatbot)\b",
        hello=(
            r"hi|hey|hello|hiya|dear|welcome|thanks|thank you|thx|bye|goodbye|goodnight|good (?:morning|evening|night)"
            r"|congrats|congratulations|sorry|please|happy birthday|oh|ok|okay|yes|no|well|right|lol|haha"
        ),
        called=r"my name is|my name['’]s|call me|(?:hi|hey|hello)\W{1,3}(?:i am|i['’]?m|it['’]?s|this is)",
        months=("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    ),
    "ru": Language(
        when=(
            r"\bкогда\b|\bкако(?:го|е|й|м)\b.{0,12}\b(?:числ|день|дня|дат|месяц|год)|\bкак долго\b"
            r"|\bв каком (?:году|месяце)\b"
        ),
        who=r"\b(?:кто|кого|кому|кем|ком|чей|чья|чьё|чьи)\b",
        where=r"\b(?:где|куда|откуда)\b|\bв как(?:ом|ой) (?:городе|стране|месте)\b",
        title=r"\b(?:книг|фильм|песн|игр|назван|назыв|сериал|групп|автор|артист|программ|приложени)\w*",
        how_many=r"\b(?:сколько|как (?:долго|часто|далеко|много))\b|\bкакого возраста\b",
        time=(
            r"\b(?:вчера|сегодня|завтра|позавчера|прошл\w+|следующ\w+|назад|недел\w+|выходн\w+|месяц\w*|год\w*|недавно"
            r"|январ\w+|феврал\w+|март\w*|апрел\w+|ма[йяе]|июн\w+|июл\w+|август\w*|сентябр\w+|октябр\w+|ноябр\w+"
            r"|декабр\w+|понедельник\w*|вторник\w*|сред[уы]|четверг\w*|пятниц\w+|суббот\w+|воскресень\w+|\d{4})\b"
        ),
        people=(
            r"\b(?:мам|пап|мать|отц|отец|сестр|брат|жен|муж|друг|друз|подруг|сын|доч|дет|семь|двоюродн|тёт|тет|дяд"
            r"|начальник|команд|коллег|сосед)\w*"
        ),
        place=r"\b(?:в|во|на|из|около|под) \^",
        number=r"\d|\b(?:один|одна|дв[ае]|три|четыре|пять|шесть|семь|восемь|девять|десять|пар[ау]|несколько|дважды)\b",
        first_person=r"\b(?:я|мне|меня|мной|мо(?:й|я|ё|е|и|ю|его|ей|их|им|ими|ём|ем|ему)|мы|нас|нам|наш(?:а|е|и|его|ей|ему|ем|им|ими|их|у)?)\b",
        second_person=r"\b(?:ты|тебе|тебя|твой|твоя|твоё|твои|вы|вам|вас|ваш(?:а|е|и|его|ей|ему|ем|им|ими|их|у)?)\b",
        told=(
            r"\b(?:ты|вы)\b.{0,16}\b(?:сказал|говорил|совет|посовет|рекоменд|порекоменд|предлаг|предлож|упомян|упомин"
            r"|перечисл|объясн|писал|написал|назвал|называл|привел|привёл|ответил)\w*"
            r"|\b(?:тво|ваш)\w* (?:ответ|совет|предложен|рекомендац|список|объяснен)\w*"
        ),
        user=r"\b(?:пользовател|клиент|заказчик)\w*\b",
        assistant=r"\b(?:ассистент|помощник|бот|агент)\w{0,3}\b",
        hello=(
            r"привет|здравствуй(?:те)?|добр(?:ый|ое|ой) (?:день|вечер|утро|ночи)|спасибо|пока|дорог(?:ая|ой)|извини"
            r"|прости|пожалуйста|поздравляю|с днём рождения|ой|ну|да|нет"
        ),
        called=r"меня зовут|зови меня|можно просто|(?:привет|здравствуйте)\W{1,3}(?:я|это)",
        months=("янв", "фев", "мар", "апр", "ма", "июн", "июл", "авг", "сен", "окт", "ноя", "дек"),
    ),
    "zh": Language(
        when=r"什么时候|何时|哪(?:一)?[天年月]|几[月号点]|多久",
        who=r"谁|哪位",
        where=r"哪里|哪儿|在哪|什么地方",
        title=r"书|电影|歌|游戏|名字|叫什么|节目|作者",
        how_many=r"多少|几[个次岁]|多[大远长]",
        time=r"昨天|今天|明天|上周|下周|上个月|去年|今年|明年|前天|周[一二三四五六日末]|(?<!\d)\d++[年月日号]|最近|以前",
        people=r"妈|爸|姐|妹|哥|弟|妻|丈夫|朋友|儿子|女儿|孩子|家人|同事|老板|邻居",
        number=r"\d|(?<![一二三四五六七八九十两几])[一二三四五六七八九十两几]++[个次岁只]",
        first_person=r"我",
        second_person=r"你|您",
        told=r"[你您].{0,8}(?:说|告诉|推荐|建议|提到|提过|列|写|解释|给出|回答)",
        user=r"用户|客户|顾客",
        assistant=r"助手|助理|机器人|客服",
        hello=r"你好|您好|嗨|嘿|哈喽|谢谢|再见|拜拜|早上好|早安|晚安|对不起|抱歉|亲爱的|生日快乐",
        called=r"我叫|我的名字是|叫我|我名叫",
    ),
}


class AnyOf:
    r"""One pattern for all languages; ``\^`` stands for a word that begins with a capital letter.

    In a text of ASCII alone only English is looked for, which is four times as fast and finds the same: what the
    other languages have in ASCII (digits), English has too.
    """

    def __init__(self, name: str) -> None:
        found = [str(getattr(language, name)) for language in LANGUAGES.values() if getattr(language, name)]
        joined = "|".join(f"(?:{part})" for part in found)
        self._all = compiled(joined.replace(r"\^", r"(?-i:[A-ZА-ЯЁ])"), re.IGNORECASE)
        english = str(getattr(LANGUAGES["en"], name))
        self._ascii = compiled(english.replace(r"\^", r"(?-i:[A-Z])"), re.IGNORECASE | re.ASCII)

    def search(self, text: str) -> re.Match[str] | None:
        """The first place, if any."""
        return (self._ascii if text.isascii() else self._all).search(text)

    def findall(self, text: str) -> list[str]:
        """Every place."""
        return (self._ascii if text.isascii() else self._all).findall(text)


def any_of(name: str) -> AnyOf:
    """What finds any of the words of that kind, in whatever language."""
    return AnyOf(name)
