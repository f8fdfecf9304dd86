"""Words of the calendar, as tables: months, weekdays, words for days near now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_MONTH_TABLE: Final = """january jan januar janvier enero gennaio janeiro январь января январе янв січня
|february feb februar février febrero febbraio fevereiro февраль февраля феврале фев лютого
|march mar märz mars marzo março март марта марте мар березня
|april apr avril abril aprile апрель апреля апреле апр квітня
|may mai mayo maggio maio май мая мае травня
|june jun juni juin junio giugno junho июнь июня июне червня
|july jul juli juillet julio luglio julho июль июля июле липня
|august aug août agosto август августа августе авг серпня
|september sep sept septembre septiembre settembre setembro сентябрь сентября сентябре сен сент вересня
|october oct oktober octobre octubre ottobre outubro октябрь октября октябре окт жовтня
|november nov novembre noviembre novembro ноябрь ноября ноябре ноя листопада
|december dec dezember décembre diciembre dicembre dezembro декабрь декабря декабре дек грудня"""
_WEEKDAY_TABLE: Final = """monday mon montag понедельник понедельника понедельнику понедельником пн 一
|tuesday tue tues dienstag вторник вторника вторнику вт 二
|wednesday wed mittwoch среда среду среды среде ср 三
|thursday thu thur thurs donnerstag четверг четверга четвергу чт 四
|friday fri freitag пятница пятницу пятницы пятнице пт 五
|saturday sat samstag суббота субботу субботы субботе сб 六
|sunday sonntag воскресенье воскресенья воскресенью вс 日 天"""
_NEAR_TABLE: Final = """0 today tonight now сегодня heute aujourd'hui hoy 今天 今日 今晚
|1 tomorrow завтра morgen demain mañana 明天 明日|-1 yesterday вчера gestern hier ayer 昨天 昨日
|2 послезавтра übermorgen 后天|-2 позавчера vorgestern 前天"""


def _rows(table: str) -> list[list[str]]:
    return [row.split() for row in table.replace("\n", "").split("|")]


MONTHS: Final[Mapping[str, int]] = {
    word: number for number, words in enumerate(_rows(_MONTH_TABLE), start=1) for word in words
}
WEEKDAYS: Final[Mapping[str, int]] = {
    word: number for number, words in enumerate(_rows(_WEEKDAY_TABLE)) for word in words
}
"""Monday is 0; the Chinese words are what follows 周, 星期 or 礼拜."""
NEAR: Final[Mapping[str, int]] = {word: int(days) for days, *words in _rows(_NEAR_TABLE) for word in words}
"""Days from now."""
HAN_DAY: Final = "[一二三四五六七八九十]{1,3}"


def month_pattern() -> str:
    """Any month's word, none followed by more of a word."""
    return rf"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![^\W\d_])"
