"""Units, scales and currencies, as tables: each word with what it is converted to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# A row: the base, the factor to it, the words; "_" is a space within one.
_UNITS: Final = """% 1 % процент процента процентов проценте проценту процентах percent pct prozent 百分
|s 1 s sec secs second seconds сек секунд секунды секунду секунда 秒
|s 0.000001 µs microsecond microseconds микросекунд|s 0.001 ms msec millisecond milliseconds мс миллисекунд
|s 60 min mins minute minutes мин минут минуты минуту минута минутах 分钟
|s 3600 h hr hrs hour hours час часа часов часу часам stunden stunde 小时
|s 86400 day days день дня дней дню дням сут суток tage tagen tag 天
|s 604800 week weeks wk wks неделя недели недель неделю неделе wochen woche 周 星期|s 1209600 fortnight fortnights
|mo 1 month months mo месяц месяца месяцев месяцу месяцам monate monat 个月
|mo 12 year years yr yrs год года лет году jahre jahr 年|mo 3 quarter quarters квартал квартала
|g 1 g gram grams gramme grammes г гр грамм грамма граммов 克
|g 1000 kg kilo kilos kilogram kilograms кг килограмм килограмма килограммов 公斤 千克
|g 0.001 mg milligram milligrams мг миллиграмм миллиграмма миллиграммов 毫克
|g 1000000 tonne tonnes тонна тонны тонн|lb 1 lb lbs pound_weight
|m 1 m meter meters metre metres м метр метра метров 米
|m 1000 km kilometer kilometers kilometre kilometres км километр километра километров 公里
|m 0.01 cm centimeter centimeters centimetre centimetres см сантиметр сантиметра сантиметров 厘米
|m 0.001 mm millimeter millimeters millimetre millimetres мм миллиметр миллиметров
|mi 1 mi mile miles миля мили миль|ft 1 ft foot feet|in 1 inch inches
|l 1 l liter liters litre litres л литр литра литров 升
|l 0.001 ml milliliter milliliters millilitre millilitres мл миллилитр миллилитра миллилитров 毫升|l 0.01 cl
|l 1000 m³ m3 м³ м3 cubic_metre cubic_metres cubic_meter cubic_meters
куб._м кубический_метр кубических_метров кубических_метра 立方米
|gal 1 gal gallon gallons галлон галлона галлонов|pint 1 pint pints
|oz 1 oz ounce ounces унция унции унций|m² 1 m² m2 sqm sq_m sq._m square_metre square_metres square_meter
square_meters м² м2 кв_м кв._м кв.м квадратный_метр квадратных_метров квадратных_метра 平方米 平米
|m² 10000 ha hectare hectares га гектар гектара гектаров|acre 1 acre acres акр акра акров|ft² 1 sqft ft² ft2
sq_ft sq._ft square_foot square_feet
|m² 1000000 km² km2 км² square_kilometre square_kilometres square_kilometer square_kilometers 平方公里
|yd 1 yd yard yards|cal 1 cal kcal calories ккал калорий|km/h 1 km/h kmh км/ч|mph 1 mph|B 1 byte bytes байт
|B 1000 kb kib кб kilobyte kilobytes килобайт|B 1000000 mb mib мб megabyte megabytes мегабайт
|B 1000000000 gb gib гб gigabyte gigabytes гигабайт|B 1000000000000 tb tib тб terabyte terabytes терабайт
|bit/s 1000 kbit/s kbps|bit/s 1000000 mbit/s mbps|bit/s 1000000000 gbit/s gbps|W 1 w watt watts вт|W 1000 kw квт
|kWh 1 kwh|V 1 volt volts|Hz 1 hz|Hz 1000 khz|Hz 1000000 mhz|Hz 1000000000 ghz|°C 1 °c|°F 1 °f
|° 1 ° degrees degree градусов градуса градус 度|px 1 px|rps 1 rps qps|rpm 1 rpm|token 1 token tokens токенов"""

_CURRENCIES: Final = """USD $ us$ usd dollar dollars buck bucks доллар доллара долларов доллары долларах долларам 美元
|EUR € eur euro euros евро 欧元|GBP £ gbp pound pounds quid фунт фунта фунтов 英镑
|RUB ₽ rub ruble rubles rouble roubles руб рубль рубля рублей рублю рублям рублях рубли р
|CNY cny rmb yuan renminbi юань юаня юаней 元 块 块钱 人民币|JPY jpy yen иена иены иен йен 円 日元
|CHF chf franc francs franken sfr франк франка франков|INR ₹ inr rupee rupees рупий|KRW ₩ krw won вон 원
|UAH ₴ uah hryvnia гривна гривны гривен|KZT ₸ kzt tenge тенге|TRY ₺ try lira lire лир|PLN pln zł zloty злотых
|SEK sek kronor|NOK nok|DKK dkk kroner|CZK czk|BRL brl reais|CAD cad|AUD aud|BTC btc bitcoin bitcoins|YEN ¥"""

_SCALES: Final = """1000 k тыс тысяч тысячи тысяча тысячу тысячах thousand grand 千|10000 万|100000000 亿
|1000000 m mn mln million millions млн миллион миллиона миллионов миллионах millionen 百万
|1000000000 b bn billion billions млрд миллиард миллиарда миллиардов"""


def _units() -> dict[str, tuple[str, float]]:
    table: dict[str, tuple[str, float]] = {}
    for row in _UNITS.replace("\n", " ").split("|"):
        base, factor, *words = row.split()
        table.update({word.replace("_", " "): (base, float(factor)) for word in words})
    return table


def _codes() -> dict[str, str]:
    rows = (row.split() for row in _CURRENCIES.replace("\n", "").split("|"))
    return {word: code for code, *words in rows for word in words}


def _scale_table() -> dict[str, float]:
    rows = (row.split() for row in _SCALES.replace("\n", "").split("|"))
    return {word: float(factor) for factor, *words in rows for word in words}


UNITS: Final[Mapping[str, tuple[str, float]]] = _units()
"""A unit's word, in small letters, to its base and the factor to it."""
CURRENCIES: Final[Mapping[str, str]] = _codes()
"""A currency's sign or word, in small letters, to its code; the sign of yen and yuan is ``YEN``."""
SCALES: Final[Mapping[str, float]] = _scale_table()

YEN_OR_YUAN: Final = ("JPY", "CNY")


def alternatives(words: Mapping[str, object]) -> str:
    """A pattern for any of these words, none of them followed by more of a word."""
    ordered = sorted(words, key=len, reverse=True)
    spelled = [
        re.escape(word) + (r"(?![^\W\d_])" if word[-1].isalpha() and word[-1] < "\u3000" else "") for word in ordered
    ]
    return "|".join(spelled)
