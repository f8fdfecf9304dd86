"""Words of numbers, units, money and the calendar in English, German, Russian and Chinese, in small letters.

A row is a value and its words. ``минут/а/ы`` stands for a stem alone and with each ending; "ё" is written "е".
"""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

_NUMBERS: Final = """
1 один одна одно одного одной одному одну одним одном eins
2 two both couple дв/а/е/ух/ум/умя дво/е/их/им об/а/е/оих/еих вдвоем пара пару пары zwei zwo zweien zweier beide beiden
3 three тр/и/ех/ем/емя тро/е/их/им втроем drei dreien dreier
4 four четыр/е/ех/ем/ьмя четвер/о/ых/ым вчетвером vier vieren
5 five пят/ь/и/ью пятер/о/ых впятером fünf fuenf
6 six шест/ь/и/ью шестер/о/ых вшестером sechs
7 seven сем/ь/и/ью семер/о/ых sieben
8 eight восем/ь/ью восьми восьмью acht
9 nine девят/ь/и/ью neun
10 ten десят/ь/и/ью десяток десятка zehn
11 eleven одиннадцат/ь/и/ью elf
12 twelve dozen двенадцат/ь/и/ью дюжин/а/у/ы zwölf zwoelf dutzend
13 thirteen тринадцат/ь/и/ью
14 fourteen четырнадцат/ь/и/ью
15 fifteen пятнадцат/ь/и/ью
16 sixteen шестнадцат/ь/и/ью
17 seventeen семнадцат/ь/и/ью
18 eighteen восемнадцат/ь/и/ью
19 nineteen девятнадцат/ь/и/ью
20 twenty двадцат/ь/и/ью
30 thirty тридцат/ь/и/ью
40 forty fourty сорок/а
50 fifty пятьдесят пятидесяти пятьюдесятью полсотни
60 sixty шестьдесят шестидесяти шестьюдесятью
70 seventy семьдесят семидесяти семьюдесятью
80 eighty восемьдесят восьмидесяти восемьюдесятью
90 ninety девяност/о/а
100 ст/о/а сотня сотню сотни
200 двести двухсот двумстам двумястами
300 триста трехсот тремстам тремястами
400 четыреста четырехсот четыремстам
500 пятьсот пятисот пятистам
600 шестьсот шестисот шестистам
700 семьсот семисот семистам
800 восемьсот восьмисот восьмистам
900 девятьсот девятисот девятистам
1.5 полтор/а/ы/ых anderthalb anderthalbe anderthalben eineinhalb
2.5 zweieinhalb
3.5 dreieinhalb
4.5 viereinhalb
5.5 fünfeinhalb
6.5 sechseinhalb
7.5 siebeneinhalb
8.5 achteinhalb
"""
_SCALES: Final = """
100 hundred hundreds
1000 k к tsd thousand thousands grand тыс тысяч/а/и/у/е/ей/ам/ами/ах тыщ/а/и/у tausend tausende 千
10000 万
1000000 m mn mln mio million millions миллион/а/ов/у/ом/е/ы млн лям millionen 百万
100000000 亿
1000000000 b bn billion billions миллиард/а/ов/у/ом/е/ы млрд mrd milliarde milliarden
"""
_UNITS: Final = """
% 1 % percent pct процент/а/ов/у/ом/е/ы/ами/ах prozent pp
s 0.001 ms msec millisecond milliseconds мс миллисекунд/а/ы/у millisekunde millisekunden 毫秒
s 1 s sec secs second seconds с сек секунд/а/ы/у/е/ам/ами/ах sekunde sekunden sek 秒 秒钟
s 60 min mins minute minutes мин минут/а/ы/у/е/ой/ам/ами/ах минутк/а/у/и minuten 分钟 分
s 3600 h hr hrs hour hours ч час/а/ов/у/ом/е/ам/ами/ах stunde stunden std 小时 个小时 钟头
s 86400 d day days night nights дн день дн/я/ей/ю/ем/ям/ями/ях сут сутки суток сутками ноч/ь/и/ей
s 86400 tag tage tagen tages nacht nächte nächten 天 晚 个晚上
s 604800 week weeks wk wks недел/я/и/ь/ю/е/ей/ям/ями/ях woche wochen 周 个星期 星期 礼拜 个礼拜
s 1209600 fortnight fortnights
mo 1 month months mo mos мес месяц/а/ев/у/ем/е/ы/ам/ами/ах monat monate monaten monats 个月
mo 3 quarter quarters квартал/а/ов/у/ом/е quartal quartale quartalen 季度 个季度
mo 6 полгода полугода полугодие
mo 12 year years yr yrs yo год/а/у/ом/ам/ами/ах лет годик jahr jahre jahren jahres 年 岁
mo 120 decade decades jahrzehnt jahrzehnte
g 0.001 mg milligram milligrams мг миллиграмм/а/ов milligramm 毫克
g 1 g gram grams gramme grammes г гр грамм/а/ов/у gramm 克
g 500 斤
g 1000 kg kgs kilo kilos kilogram kilograms кг кило килограмм/а/ов/у/ом/е kilogramm 公斤 千克
g 1000000 t ton tons tonne tonnes тонн/а/ы/у/е тонн tonnen 吨
oz 1 oz ounce ounces унци/я/и/й
oz 16 lb lbs
m 0.001 mm millimeter millimeters millimetre millimetres мм миллиметр/а/ов 毫米
m 0.01 cm centimeter centimeters centimetre centimetres см сантиметр/а/ов/у zentimeter 厘米
m 1 m meter meters metre metres м метр/а/ов/у/ом/е/ах metern 米
m 1000 km kilometer kilometers kilometre kilometres км километр/а/ов/у/ом/е/ах kilometern 公里 千米
in 1 inch inches zoll дюйм/а/ов 英寸
in 12 ft foot feet фут/а/ов 英尺
in 36 yd yard yards ярд/а/ов
in 63360 mi mile miles мил/я/и/ь/ю meile meilen 英里
m² 1 m² m2 qm sqm ㎡ м² м2 平方米 平米 平方 quadratmeter quadratmetern квадратов
m² 10000 ha hectare hectares hektar га гектар/а/ов 公顷
m² 100 сот/ок/ки/ка
m² 1000000 km² km2 км² км2 平方公里
in² 144 sqft ft² ft2
m³ 1 m³ m3 м³ м3 立方米 kubikmeter куб/а/ов
l 0.001 ml milliliter milliliters millilitre millilitres мл миллилитр/а/ов 毫升
l 0.01 cl
l 1 l liter liters litre litres л литр/а/ов/у litern 升
pint 1 pint pints
pint 8 gal gallon gallons галлон/а/ов
cal 1 cal kcal calorie calories ккал калори/й/и/я kalorien 卡 大卡 千卡
km/h 1 kmh
mph 1 mph
B 1 byte bytes байт/а/ов 字节
B 1000 kb kilobyte kilobytes кб килобайт/а
B 1024 kib
B 1000000 mb megabyte megabytes мб мегабайт/а
B 1048576 mib
B 1000000000 gb gigabyte gigabytes гб гигабайт/а
B 1073741824 gib
B 1000000000000 tb terabyte terabytes тб терабайт/а
bit 1 bit bits бит
W 1 w watt watts вт ватт 瓦
W 1000 kw квт киловатт kilowatt 千瓦
Wh 1000 kwh квтч 度电
V 1 v volt volts вольт
A 1 amp amps ампер
Hz 1 hz гц
Hz 1000 khz кгц
Hz 1000000 mhz мгц
Hz 1000000000 ghz ггц
° 1 ° deg degree degrees градус/а/ов/ах/ом grad 度 摄氏度
px 1 px pixel pixels пиксел/ей/я 像素
dpi 1 dpi
token 1 token tokens токен/а/ов
"""
_CURRENCIES: Final = """
USD $ us$ usd dollar dollars buck bucks доллар/а/ов/ы/ам/ами/ах бакс/ов/а 美元 美金 刀
EUR € eur euro euros евро 欧元
GBP £ gbp pound pounds quid фунт/а/ов pfund 英镑
RUB ₽ rub ruble rubles rouble roubles руб рубл/ь/я/ей/ю/ям/ями/ях/и/ем р рублик 卢布
CNY ¥ cny rmb yuan renminbi юан/ь/я/ей/ям 元 块 块钱 人民币
JPY jpy yen иен/а/ы 円 日元
CHF chf franc francs franken sfr франк/а/ов
INR ₹ inr rupee rupees рупи/й/я/и
KRW ₩ krw won
UAH ₴ uah hryvnia грив/ен/на/ны
KZT ₸ kzt tenge тенге
TRY ₺ try lira lire лир/а/ы
PLN pln zł zloty злот/ых/ый
SEK sek kronor
NOK nok
DKK dkk kroner
CZK czk kč крон/а/ы
CENT cent cents cts pence копе/ек/йки/йка коп 分钱 毛 角
BTC btc bitcoin bitcoins
"""
_MONTHS: Final = """
1 jan january januar jänner янв январ/ь/я/ю/е/ем
2 feb february februar февр фев феврал/ь/я/ю/е/ем
3 mar march mär märz maerz мар март/а/у/е/ом
4 apr april апр апрел/ь/я/ю/е/ем
5 may mai май мая мае маю маем
6 jun june juni июн июн/ь/я/ю/е/ем
7 jul july juli июл июл/ь/я/ю/е/ем
8 aug august авг август/а/у/е/ом
9 sep sept september сен сент сентябр/ь/я/ю/е/ем
10 oct october okt oktober окт октябр/ь/я/ю/е/ем
11 nov november ноя нояб ноябр/ь/я/ю/е/ем
12 dec december dez dezember дек декабр/ь/я/ю/е/ем
"""
_WEEKDAYS: Final = """
0 monday mondays mon montag montags понедельник/а/у/е/ом/и/ам пн mo
1 tuesday tuesdays tue tues dienstag dienstags вторник/а/у/е/ом/и/ам вт di
2 wednesday wednesdays wed weds mittwoch mittwochs сред/а/ы/у/е/ой/ам ср mi
3 thursday thursdays thu thur thurs donnerstag donnerstags четверг/а/у/е/ом/и/ам чт do
4 friday fridays fri freitag freitags пятниц/а/ы/у/е/ей/ам пт fr
5 saturday saturdays sat samstag samstags sonnabend суббот/а/ы/у/е/ой/ам сб sa
6 sunday sundays sun sonntag sonntags воскресень/е/я/ю/ем/ям вс so
"""
_NEAR: Final = """
-3 大前天
-2 позавчера vorgestern 前天
-1 yesterday last_night вчера вчерашн/ий/его/ей/юю/ем gestern gestrig/e/en 昨天 昨日 昨晚
0 today tonight сегодня сегодняшн/ий/его/ей/юю heute heutig/e/en 今天 今日 今晚 今早 今夜
1 tomorrow завтра завтрашн/ий/его/ей/юю morgen 明天 明日 明早 明晚
2 послезавтра übermorgen uebermorgen 后天
3 大后天
"""
_ORDINALS: Final = """
1 first первого первое первому первый первая первую ersten erste erster
2 second второго второе второму второй вторую zweiten zweite zweiter
3 third третьего третье третьему третий третью dritten dritte dritter
4 fourth четвертого четвертое четвертому четвертый четвертую vierten vierte
5 fifth пятого пятое пятому пятый пятую fünften fünfte
6 sixth шестого шестое шестому шестой шестую sechsten sechste
7 seventh седьмого седьмое седьмому седьмой седьмую siebten siebte siebenten
8 eighth восьмого восьмое восьмому восьмой восьмую achten
9 ninth девятого девятое девятому девятый девятую neunten neunte
10 tenth десятого десятое десятому десятый десятую zehnten zehnte
11 eleventh одиннадцатого одиннадцатое одиннадцатому elften elfte
12 twelfth двенадцатого двенадцатое двенадцатому zwölften zwölfte
13 thirteenth тринадцатого тринадцатое dreizehnten
14 fourteenth четырнадцатого четырнадцатое vierzehnten
15 fifteenth пятнадцатого пятнадцатое fünfzehnten
16 sixteenth шестнадцатого шестнадцатое sechzehnten
17 seventeenth семнадцатого семнадцатое siebzehnten
18 eighteenth восемнадцатого восемнадцатое achtzehnten
19 nineteenth девятнадцатого девятнадцатое neunzehnten
20 twentieth двадцатого двадцатое двадцатому zwanzigsten
30 thirtieth тридцатого тридцатое dreißigsten
"""
_SHARES: Final = """
0.5 half halves половин/а/ы/у/е/ой hälfte halb halbe halben halber halbes 一半 半数 半
0.25 quarter четверт/ь/и/ью viertel
0.75 dreiviertel
0.3333333333 third thirds трет/ь/и drittel
0.2 fifth fifths fünftel
0.1 tenth tenths zehntel
"""


def _words(row: list[str]) -> Iterator[str]:
    for word in row:
        stem, *endings = word.split("/")
        yield stem.replace("_", " ")
        yield from (stem + ending for ending in endings)


def _table(text: str) -> dict[str, float]:
    rows = (line.split() for line in text.strip().splitlines())
    return {word: float(value) for value, *words in rows for word in _words(words)}


def _whole(text: str) -> dict[str, int]:
    return {word: int(value) for word, value in _table(text).items()}


_GERMAN_ONES: Final = "ein zwei drei vier fünf sechs sieben acht neun".split()
_GERMAN_TEENS: Final = "zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split()
_GERMAN_TENS: Final = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()


def _german() -> dict[str, float]:
    """Ten to 999 in one word each: "zweiundvierzig", "dreihundertacht"."""
    below = dict(zip(_GERMAN_ONES, range(1, 10), strict=True))
    below |= dict(zip(_GERMAN_TEENS, range(10, 20), strict=True))
    for number, ten in zip(range(20, 100, 10), _GERMAN_TENS, strict=True):
        below[ten] = number
        below |= {f"{one}und{ten}": number + digit for digit, one in enumerate(_GERMAN_ONES, start=1)}
    every = {word: float(number) for word, number in below.items()}
    for digit, one in enumerate(["", *_GERMAN_ONES]):
        hundred = max(digit, 1) * 100
        every[f"{one}hundert"] = hundred
        every |= {f"{one}hundert{word}": float(hundred + number) for word, number in below.items()}
        every |= {f"{one}hundertund{word}": float(hundred + number) for word, number in below.items()}
    spelled = {word.replace("ß", "ss").replace("ü", "ue").replace("ö", "oe"): number for word, number in every.items()}
    return {word: number for word, number in (spelled | every).items() if word != "ein"}


def _units() -> dict[str, tuple[str, float]]:
    rows = (line.split() for line in _UNITS.strip().splitlines())
    return {word: (base, float(factor)) for base, factor, *words in rows for word in _words(words)}


def _currencies() -> dict[str, str]:
    rows = (line.split() for line in _CURRENCIES.strip().splitlines())
    return {word: code for code, *words in rows for word in _words(words)}


NUMBERS: Final[Mapping[str, float]] = _german() | {"one": 1.0} | _table(_NUMBERS)
SCALES: Final[Mapping[str, float]] = _table(_SCALES)
UNITS: Final[Mapping[str, tuple[str, float]]] = _units()
"""A unit's word to its base and the factor to it; a month has no seconds, a mile no metres: they do not convert."""
CURRENCIES: Final[Mapping[str, str]] = _currencies()
MONTHS: Final[Mapping[str, int]] = _whole(_MONTHS)
WEEKDAYS: Final[Mapping[str, int]] = _whole(_WEEKDAYS)
"""Monday is 0."""
NEAR: Final[Mapping[str, int]] = _whole(_NEAR)
"""Days from the message's day."""
_FIRSTS: Final = _whole(_ORDINALS)
ORDINALS: Final[Mapping[str, int]] = {
    **_FIRSTS,
    **{
        f"{one}und{tens}sten": base + digit
        for tens, base in (("zwanzig", 20), ("dreißig", 30))
        for digit, one in enumerate(_GERMAN_ONES, start=1)
    },
}
TENS: Final[Mapping[str, int]] = {"twenty": 20, "thirty": 30, "двадцать": 20, "тридцать": 30}
"""What may stand before an ordinal: "twenty-first"."""
SHARES: Final[Mapping[str, float]] = _table(_SHARES)
FRACTION_SIGNS: Final[Mapping[str, float]] = {
    "½": 1 / 2, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 1 / 4, "¾": 3 / 4, "⅕": 1 / 5, "⅛": 1 / 8, "⅜": 3 / 8,
    "⅝": 5 / 8, "⅞": 7 / 8,
}  # fmt: skip
HALF_UNITS: Final[Mapping[str, tuple[float, str]]] = {
    "полчаса": (0.5, "час"), "получаса": (0.5, "час"), "полдня": (0.5, "день"), "полминуты": (0.5, "минуту"),
    "полгода": (0.5, "год"), "полугода": (0.5, "год"), "полкило": (0.5, "кило"), "пол-литра": (0.5, "литр"),
    "полкилометра": (0.5, "км"), "viertelstunde": (0.25, "h"), "dreiviertelstunde": (0.75, "h"),
    "halbstunde": (0.5, "h"), "halbjahr": (0.5, "jahr"), "vierteljahr": (0.25, "jahr"), "полпроцента": (0.5, "%"),
    "半小时": (0.5, "小时"), "半个小时": (0.5, "小时"), "半年": (0.5, "年"), "半天": (0.5, "天"), "半个月": (0.5,
    "个月"),
    "一刻钟": (0.25, "小时"), "三刻钟": (0.75, "小时"),
}  # fmt: skip
"""One word that says how much of which unit."""
HALF_HOURS: Final[Mapping[str, int]] = {
    f"пол{word}": hour
    for word, hour in _FIRSTS.items()
    if word.endswith("го") and hour <= 12  # noqa: PLR2004
}
"""The hour that is half over: in Russian the one that began is not named."""

ARTICLES: Final = frozenset(
    """a an one ein eine einen einem einer eines eins один одну одна одного одной per every each
    каждый каждую""".split()
)
ONES: Final = frozenset("неделю неделя час часок месяц год день сутки минуту".split())
"""Russian has no article: each of them is one."""
NO_NUMERAL_AFTER: Final = frozenset(
    """of is was has that who can and or but in to on by at for with would will another из и не за ли же бы от von
    und ist war der die das""".split()
)
"""After "one" they show that it stands for a noun: "one of them"."""
JOINTS: Final = frozenset(
    """half половиной point komma точка comma с past без vor nach четверти or so odd 个半 z utc halb als than swiss
    us и""".split()
)
"""Words that only join others."""
APPROXIMATE: Final = frozenset(
    """about around approximately approx roughly some circa ca nearly almost over under more less ish approaching
    около примерно приблизительно порядка почти более больше свыше чуть где-то ориентировочно etwa rund ungefähr
    zirka knapp fast gut über annähernd gegen 约 大约 大概 近 将近 接近 超过 差不多 上下 左右 多 余 来""".split()
)
SQUARES: Final = frozenset("sq square кв квадратных квадратный квадратного квадратные квадратные квадратныe".split())
CUBES: Final = frozenset("cubic куб кубических кубический кубометров".split())
NUMBERING: Final = frozenset(
    """step steps round rounds phase stage iteration attempt option message messages msg seq entry item figure
    version шаг шага шаге раунд раунда этап этапа этапе сообщение сообщении сообщения сообщениях сообщениям
    вариант варианте пункт пункте пункта задание schritt runde nachricht nachrichten punkt 第 消息 步骤 seqs""".split()
)
"""A bare number after them counts something off."""
RANGE_WORDS: Final = frozenset("""to and or bis und oder по до и или 到 至 和 或 through until till - thru""".split())
BEFORE_HOURS: Final = frozenset(
    """at by until till from after before around about to between since um ab gegen bis von vor nach в во к ко до с
    со около после часов""".split()
)
LATE: Final = frozenset(
    """pm вечера дня пополудни evening afternoon tonight abends nachmittags abend nachmittag 下午 傍晚
    晚上 晚 中午 今晚 明晚 昨晚""".split()
)
EARLY: Final = frozenset(
    """am утра ночи morning morgens früh vormittags vormittag 凌晨 清晨 早上 上午 早 今早 明早""".split()
)
NIGHT: Final = frozenset("night nachts ночи 夜里 半夜 深夜".split())
CLOCK: Final = frozenset("o'clock oclock uhr час часа часов".split())
NAMED_HOURS: Final[Mapping[str, tuple[int, int]]] = {
    "noon": (12, 0), "midday": (12, 0), "midnight": (0, 0), "полдень": (12, 0), "полдня": (12, 0), "полночь": (0, 0),
    "полудня": (12, 0), "полуночи": (0, 0), "mittag": (12, 0), "mittags": (12, 0),
    "mitternacht": (0, 0), "正午": (12, 0),
    "午夜": (0, 0), "零点": (0, 0),
}  # fmt: skip
PAST: Final = frozenset(
    """last past previous lastest letzten letzte letzter letztem letztes vergangenen vergangene vorigen vorige 上 上个
    去 прошл прошлом прошлой прошлую прошлый прошлого прошлые прошлая прошедшую прошедшие минувшую""".split()
)
NEXT: Final = frozenset(
    """next coming following upcoming nächsten nächste nächster nächstem nächstes kommenden kommende kommender 下 下个
    明 след следующ следующей следующую следующем следующий следующего следующие следующая ближайшую ближайший
    ближайшие ближайшее будущей будущем""".split()
)
THIS: Final = frozenset(
    """this current diesen diese dieser diesem dieses 这 本 这个 今 эту этой этот этом эти это текущей
    текущем""".split()
)
AHEAD: Final = frozenset("in within after через спустя за binnen nach innerhalb".split())
"""Before a length of time: then."""
LATER: Final = frozenset("later hence спустя später потом from 后 以后 之后 内 之内 以内".split())
"""After a length of time: then."""
AGO: Final = frozenset("ago earlier before назад раньше zuvor früher vorher 前 以前 之前".split())
DATE_FILL: Final = frozenset("of the de den der am".split())
SPANS: Final[Mapping[str, str]] = {
    **dict.fromkeys("week weeks недел неделя неделе неделю недели неделей woche 周 星期 礼拜".split(), "week"),
    **dict.fromkeys("weekend weekends выходные выходных выходным wochenende wochenenden 周末".split(), "weekend"),
    **dict.fromkeys("month месяц месяце месяца monat monats monates 月 个月".split(), "month"),
    **dict.fromkeys("year год году года jahr jahres 年".split(), "year"),
}
ENDS: Final = frozenset("end конец конце конца концу ende".split())
MONTH_ENDS: Final = frozenset("monatsende month-end 月底 月末".split())
BEFORE_MONTHS: Final = frozenset(
    """in im ab by until till since of early late mid this next last from through before after""".split()
)
WORDS_AND_VERBS: Final = frozenset(
    {"may", "march", "mar", "sept", "mai", "mo", "do", "so", "sa", "di", "mi", "fr", "sat", "sun", "wed", "mon"}
)
"""Words of the calendar that are other words too."""
ORDINAL_ENDINGS: Final = frozenset("st nd rd th го й я е му ое ю ой ая ый ого".split())
NUMBER_ENDINGS: Final = frozenset("ти ми х м и s er x ers ies ish plus fold mal ".split())
COMPOUND_STEMS: Final[Mapping[str, str]] = {
    "летн": "год", "годичн": "год", "годовал": "год", "дневн": "день", "суточн": "день",
    "недельн": "неделя", "месячн": "месяц", "часов": "час",
    "минутн": "минута", "секундн": "секунда", "процентн": "%", "километров": "км", "метров": "м",
    "литров": "л", "кратн": "",
    "комнатн": "", "звездочн": "", "звездн": "", "этажн": "", "разов": "", "рублев": "руб",
    "местн": "", "тысячн": "тыс",
    "jährig": "jahr", "jahres": "jahr", "tägig": "tag", "tages": "tag", "wöchig": "woche",
    "monatig": "monat", "stündig": "h",
    "minütig": "min", "prozentig": "%", "teilig": "", "köpfig": "", "fach": "", "mal": "", "zimmer": "", "stöckig": "",
    "seitig": "", "spaltig": "", "sitzer": "", "bett": "", "er": "",
}  # fmt: skip
"""What follows a number in one word ("семилетняя", "dreitägig"), and the unit that it names."""
_RUSSIAN_HEADS: Final = {
    word: number for word, number in _table(_NUMBERS).items() if word[-1:] in {"и", "х", "т", "а"} and word[0] >= "а"
}
COMPOUND_HEADS: Final[Mapping[str, float]] = {
    **_RUSSIAN_HEADS, **_german(), "одно": 1.0, "ein": 1.0, "двух": 2.0, "дву": 2.0, "сто": 100.0, "девяносто": 90.0,
}  # fmt: skip
HEADS: Final = frozenset(word[:3] for word in COMPOUND_HEADS)
