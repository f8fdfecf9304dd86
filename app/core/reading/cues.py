"""What tells an important sentence: patterns for English and Russian; a further language is one more table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal

from app.core.text.factors import Index, fold
from app.core.text.patterns import compiled

Cue = Literal[
    "correction", "update", "decision", "rule", "constraint", "identity", "preference", "plan", "commitment", "open",
    "event", "result", "closed", "emphasis",
]  # fmt: skip

_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"

_ENGLISH: Final[Mapping[Cue, str]] = {
    "correction": (
        r"^(?:well,? |oh,? |hmm,? |wait,? |sorry,? |no,? )*actually\b|[,;—-] ?actually,? (?:it|make|let|we"
        r"|no|the|i)\b"
        r"|\bi was wrong\b|\bi (?:misspoke|mistyped|meant)\b|\bcorrection\b|\bscratch that\b|\bforget what i said\b"
        r"|\b(?:changed?|changing) (?:my|our) minds?\b|\bon second thoughts?\b|\binstead of\b|\bnot \S+ but\b"
        r"|\bno longer\b|^(?:no|nope|nah)\b[,.:;]? ?(?:it'?s|make|let'?s|use|not|i meant|the|go|switch|take|\S+$)"
        r"|\bturns out\b|\binstead\b(?=[.,!]|$)|\bswitch(?:ed|ing)? (?:from|back|over)?\b"
    ),
    "update": (
        r"\b(?:is|are|was|has been|got|been) (?:now|moved|changed|postponed|rescheduled|pushed|raised|cut"
        r"|increased|reduced)\b"
        r"|\b(?:moved|changed|postponed|rescheduled|pushed|raised|lowered|bumped) (?:it |the \w+ )?(?:to"
        r"|from|by|back)\b"
        r"|\bnow (?:it'?s|we use|we have|we are|we're|the \w+ is)\b|\bnew (?:deadline|budget|date|plan"
        r"|price|version|limit|number|address)\b"
        r"|\bnot .{1,40}? any ?more\b|\bupdate:|\bfrom now on\b"
    ),
    "decision": (
        r"\blet'?s (?:use|go (?:with|for|ahead)|keep (?!\w+ing)|make|stick|start with|build|move|switch"
        r"|call it|put|set|take|drop|leave|add|remove"
        r"|schedule|meet (?:on|at)|book|pick|choose|deploy|ship|write|store|host|postpone|skip|cancel"
        r"|order|do the|do a)\b|\bdecided\b|\bdecision\b"
        r"|\b(?:we|we've|all|both) agreed\b|\bagreed (?:to|on|that)\b|\bsettled on\b|\b(?:go|going|went"
        r"|stick|sticking|stay) with\b|\bi(?:'ll| will) (?:take|use|choose|book|go for)\b"
        r"|\bwe(?:'ll| will| are going to|'re going to) (?:use|go|keep|build|ship|move|start|drop|run|host"
        r"|store|write|do|need)\b"
        r"|\bchose\b|\bopted\b|\bapproved\b|\bsigned off\b|\bfinal(?:ly)? (?:answer|choice|decision|call)\b"
        r"|\bplease (?:book|cancel|proceed|use|change|add|remove|update|make|upgrade|refund)\b|\bgo ahead\b"
    ),
    "rule": (
        r"(?:^|[.:;—–] ?)(?:please )?(?:never|always|do not|don't|under no circumstances|without fail) (?!mind\b"
        r"|worry\b|be (?:silly|shy|sorry)\b)[a-z]+"
        r"|(?:^|[.:;—–] ?)if [^.?!]{2,80}?,? (?:then )?(?:stop|ask|refuse|escalate|wait|report|tell|call|use|never"
        r"|always|do not|don't)\b"
        r"|\bwithout (?:[\w']+ ){0,3}(?:consent|approval|permission|asking|review|approving)\b"
        r"|\bunless\b|\bunder no circumstances\b|\bat all times\b|\b(?:keep|stay|remain)s? (?:\w+ ){0,2}(?:away from"
        r"|free of|within|below|under|unpushed|private|secret)\b"
        r"|\b(?:is |are )?capped at\b|\b(?:cap|ceiling|quota) (?:is|of|at|for)\b|\bonly [\w' ]{2,40} (?:may|can)\b"
        r"|\b(?:nobody|no one|none) else\b|(?:^|[.:;—–] ?)(?:no|only) [A-Za-z][\w' .]{2,60}[.!]?$"
        r"|\b(?:user|client|customer|team|boss|he|she|they) (?:wants|prefers|insists on|needs) "
        r"|\bplease (?:answer|reply|respond|write|send|use|keep|make|give|show|format|include|stick|call)\b"
        r"(?! (?:it|this|that|them|going)\b)"
        r"|\bi(?:'d| would) (?:rather|prefer) (?:get|have|you|your|it|not|that|a|the)\b"
        r"|\bi (?:always |strongly )?prefer\b"
        r"|\bmust (?:never|not|always|stay|remain|be \w+ed|leave)\b"
        r"|\b(?:report|put|write|show|use|send|run|keep) (?:all|every|each)\b"
        r"|\b(?:never|not) (?:exceed|reveal|disclose|share|push|touch|store|run|send|log)\b"
    ),
    "constraint": (
        r"\bmust(?:n't)?\b(?! (?:be|have been|feel) (?:so |really |very )?(?:nice|great|hard|tough|amazing"
        r"|exciting|proud|fun))"
        r"|\b(?:can(?:'?t|not)|should ?n(?:'?t|ot)|may not) (?:be|use|exceed|have|do|go|take|leave|store"
        r"|send|share|change)\b"
        r"|\bno (?:more|later|less|fewer) than\b|\bat (?:most|least)\b|\b(?:max|min)(?:imum)?\b|\blimit(?:ed)?\b"
        r"|\brequire[sd]?\b|\brequirements?\b|\bonly (?:if|on|after|before|when|use|in|from)\b"
        r"|\bnot allowed\b|\bbudget\b"
        r"|\bcut-?off\b|\bno exceptions?\b|\b(?:nobody|no one|no-one) (?:can|may|must|is allowed)\b"
        r"|\bdeadline\b|\bdue (?:on|by|date|in)\b|\bavoid\b|\bdo(?:n't| not) (?:use|want|change|touch|add"
        r"|store|send|book)\b"
        r"|\ballerg(?:y|ic|ies)\b|\bvegan\b|\bvegetarian\b|\bnon-negotiable\b|\bhave to\b"
        r"|\bneeds? to (?:be|run|work|fit|stay|support)\b"
        rf"|\bby (?:{_WEEKDAY}|tomorrow|tonight|noon|the end|next|end of|\d)"
    ),
    "identity": (
        r"\bmy name(?:'s| is)\b|\bcall me\b|\bi(?:'m| am) (?:an?|the|from|based|\d|in charge|responsible"
        r"|working|studying|living"
        r"|married|single|divorced|retired|called)\b"
        r"|\bi (?:live|work|study|teach|own|run|lead|manage|grew up|was born|moved|come from|speak|studied"
        r"|graduated|have (?:a|an|two|three|\d))\b"
        r"|\b(?:my|our) (?:wife|husband|partner|son|daughter|kids?|children|mom|mum|dad|mother|father"
        r"|parents|sister|brother"
        r"|dog|cat|pets?|boss|manager|team|company|startup|shop|product|project|app|stack|job|email|phone"
        r"|number|address|user"
        r"|account|birthday|anniversary|favou?rite|goal|name|house|home|degree|hometown|home country)\b"
        r"|\bwe(?:'re| are) (?:an?|the|based|\d)\b"
    ),
    "preference": (
        r"\bprefer(?:s|red|ence)?\b|\bi(?:'d| would) (?:rather|like|love|prefer)\b|\bfavou?rite\b|\bfan of\b"
        r"|\bi (?:really |absolutely |also |just )?(?:like|love|hate|enjoy|want|dislike|need)\b"
        r"|\bi do(?:n't| not) (?:like|want|need|eat|drink)\b"
        r"|\bi(?:'m| am) (?:into|keen on|passionate about|interested in|looking for|afraid of)\b"
    ),
    "plan": (
        r"\b(?:tomorrow|tonight|yesterday|(?:last|next|this) (?:week(?:end)?|month|year|night|summer"
        r"|winter|spring|fall|"
        rf"{_WEEKDAY})|on {_WEEKDAY}s?|(?:a|two|three|few|\d+) (?:days?|weeks?|months?|years?) ago|in (?:a"
        rf"|two|three|\d+) (?:days?|weeks?|months?))\b"
        r"|\bplan(?:s|ning|ned)? (?:to|on|for|is)\b|\b(?:i'm|we're|i am|we are) (?:going to|gonna|planning"
        r"|thinking (?:of|about)|hoping)\b"
        r"|\b(?:current|main|our|my|the|next) (?:goal|task|objective|aim|priority|step|milestone)\b|\bnext up\b"
        r"|\b(?:awaiting|blocked (?:by|on)|in progress|(?:steps?|phase|part) \d\S*+ of \d+|(?:are|is) failing)\b"
        r"|\bgonna\b|\bscheduled\b|\bmeeting\b|\bappointment\b|\blaunch(?:es|ing)?\b"
    ),
    "commitment": (
        r"\bto-?do\b:?|\baction items?\b|\bremind me\b|\bdo(?:n't| not) forget\b|\bfollow up\b|\bnext steps?\b"
        r"|\bwe (?:still )?(?:need|have) to\b|\bi(?:'ll| will) (?:send|write|check|call|prepare|fix|do"
        r"|bring|talk|ask|get|finish|update|draft|review)\b"
        r"|\bi need to\b|\bpromised?\b|\byou should\b"
    ),
    "open": (
        r"\bstill (?:open|undecided|unclear|to be decided|need to decide)\b|\bopen questions?\b"
        r"|\bnot sure (?:yet|whether|if|which|what|how)\b"
        r"|\bundecided\b|\btbd\b|\bto be decided\b|\b(?:haven't|have not|didn't) (?:yet )?(?:decided?|figured?)\b"
        r"|\b(?:don't|do not) know yet\b|\bunresolved\b|\bstill waiting (?:for"
        r"|on)\b|\bwaiting (?:for|on) (?:the|their|his|her|an|your|approval|confirmation)\b|\bpending\b"
        r"|\bneed to (?:decide|figure out)\b"
        r"|\b(?:decide|come back to|revisit) (?:\w+ ){0,3}later\b|\bto-?do\b"
    ),
    "event": (
        r"\b(?:i|we|he|she|they|it)(?:'ve| have| has|'s)? (?:just |recently |finally |also |already |even |once )?"
        r"(?:went|got|bought|made|found|lost|won|met|took|had|saw|began|ran|built|sold|gave|wrote|did|been"
        r"|done|\w{3,}ed)\b"
    ),
    "result": (
        r"\b(?:works?|fixed|failed|fails|failing|crash(?:es|ed)?|broken|broke|error|bug|root cause|regression)\b"
        r"|\bthe (?:cause|reason|problem|issue|culprit) (?:is|was)\b|\btests? (?:pass|fail)|\b(?:booked"
        r"|confirmed|cancelled|canceled"
        r"|refunded|shipped|deployed|merged|migrated|released|launched|completed|updated)\b"
    ),
    "closed": (
        r"\b(?:done|sorted|resolved|fixed|solved|finished|completed|decided|settled|answered|figured out"
        r"|taken care of|closed)\b"
    ),
    "emphasis": (
        r"\b(?:important|crucial|critical|remember|note that|keep in mind|make sure|key (?:point|thing)"
        r"|in short|to sum up)\b"
        r"|^(?-i:[A-Z]{3,}(?: [A-Z]{2,}){0,3}):\s"
    ),
}

_RUSSIAN: Final[Mapping[Cue, str]] = {
    "correction": (
        r"\bна самом деле\b|\bточнее\b|\bвернее\b|\bя ошиб|\bоговорил|\bпередумал|\bпоправк|\bвместо\b|\bне \S+, а\b"
        r"|^нет\b[,.:;]? ?(?:не|лучше|давай|это|пусть|возьм|бер|мы|я имел|\S+$)|\bбольше не\b|\bвсё-таки\b"
        r"|\bвсе-таки\b|\bотмена\b"
    ),
    "update": (
        r"\bтеперь\b|\b(?:перенес|сдвин|измен|поменя|увелич|уменьш|подня|сниз|отлож)\w*|\bнов(?:ый|ая|ое"
        r"|ые) (?:срок|дедлайн|бюджет|дат|план|верси|адрес|номер)"
    ),
    "decision": (
        r"\bреш(?:ил|ено|аем|им)\w*|\bдавай(?:те)?\b(?! (?:посмотрим|потом|поговорим))|\bдоговорил\w*"
        r"|\bвыбра\w+|\bвыбираем\b"
        r"|\bостанов\w+ на\b|\b(?:берём|берем|возьмём|возьмем|используем|будем (?:использовать|делать"
        r"|писать|хранить))\b|\bутверд\w+"
        r"|\bсоглас(?:ен|на|ны|овал\w*)\b"
    ),
    "rule": (
        r"\bпредпочитаю\b|\bни в коем случае\b|\bни при каких\b|\bзапрещ\w+"
        r"|\bбез (?:\w+ ){0,2}(?:согласия|разрешения|одобрения)\b"
        r"|(?:^|[.:;—–] ?)(?:пожалуйста,? )?(?:никогда|всегда|не) [а-яё]+(?:й|йте|ть|те|шь)\b|\bнельзя\b"
        r"|\bесли [^.?!]{2,80}, (?:то )?(?:останов|спрос|сообщ|не |отказ|позвон|подожд)\w*"
        r"|\bпожалуйста,? (?:отвечай|пиши|присылай|используй)\w*"
        r"|\b(?:пользователь|клиент|заказчик|команда) (?:хочет|просит|предпочитает|требует)\b"
    ),
    "constraint": (
        r"\bнельзя\b|\bдолж(?:ен|на|но|ны)\b|\bобязательн\w+|\bне (?:больше|более|позже|меньше|менее"
        r"|раньше)\b|\bмаксимум\b|\bминимум\b"
        r"|\bтолько\b|\bбюджет\w*|\bдедлайн\w*|\bсрок\w*\b|\bк (?:понедельник|вторник|сред|четверг|пятниц"
        r"|суббот|воскресень|завтр|\d)\w*"
        r"|\bдо (?:понедельник|вторник|сред|четверг|пятниц|суббот|воскресень|конца|завтра|\d)\w*"
        r"|\bлимит\w*|\bограничени\w*|\bтребу\w+"
        r"|\bникогда\b|\bвсегда\b|\bаллерги\w+|\bвегетариан\w+|\bне надо\b|\bне нужно\b|\bбез\b"
    ),
    "identity": (
        r"\bменя зовут\b|\bя (?:живу|работаю|учусь|руковожу|веду|родил\w+|перее\w+|из|учил\w+|занимаюсь)\b"
        r"|\bмне \d+\b"
        r"|\b(?:мой|моя|моё|мое|мои|наш|наша|наше|наши|у меня|у нас|мою|нашу|моей|нашей|моего|нашего)\b"
    ),
    "preference": (
        r"\bпредпочита\w+|\bхо(?:чу|тел\w* бы|тим)\b|\bлюб(?:лю|им|ит)\b|\bнравится\b|\bне люблю\b"
        r"|\bненавижу\b|\bлюбим\w+\b|\bмне нуж\w+"
    ),
    "plan": (
        r"\b(?:текущ|главн|наш|следующ)\w+ (?:цель|задач\w|шаг|приоритет)\b|\b(?:этап|шаг)\w? \d+ из \d+\b"
        r"|\bзавтра\b|\bпослезавтра\b|\bвчера\b|\b(?:на|в) (?:следующ|прошл|эт)\w+ (?:недел|месяц|год"
        r"|понедельник|вторник|сред|четверг|пятниц|суббот|воскресень)\w*"
        r"|\bв (?:понедельник|вторник|среду|четверг|пятницу|субботу|воскресенье)\b|\bчерез \S+ (?:дн|недел"
        r"|месяц|год|час)\w*|\bпланиру\w+|\bсобира\w+сь\b"
        r"|\bвстреч\w+|\bзапуск\w*|\bрелиз\w*"
    ),
    "commitment": (
        r"\bнапомни\w*|\bне забыть\b|\bне забудь\w*|\bнадо (?:бы )?\w+ть\b|\bнужно \w+ть\b"
        r"|\bследующий шаг\b|\bобеща\w+|\bя (?:пришлю|напишу|проверю|сделаю|позвоню|подготовлю)\b"
        r"|\bзадач\w+\b"
    ),
    "open": (
        r"\b(?:пока|ещё|еще) не (?:реш|ясн|понятн|зна|определ|договор)\w*|\bоткрыт\w+ вопрос\w*"
        r"|\bне уверен\w*\b|\bпод вопросом\b|\bнадо решить\b"
        r"|\bнужно решить\b|\bвернёмся\b|\bвернемся\b|\bждём\b|\bждем\b|\bжду\b"
    ),
    "event": (
        r"\b(?:я|мы|он|она|они)\b (?:уже |только что |недавно |наконец |вчера )?\w{2,}(?:л|ла|ли|лся|лась"
        r"|лись)\b"
    ),
    "result": (
        r"\b(?:работает|не работает|сломал\w+|упал\w*|ошибк\w+|исправ\w+|починил\w*|готово|сделано"
        r"|проблема (?:в|была)|причин\w+|забронировал\w*|выкатил\w*|запустил\w*)\b"
    ),
    "closed": r"\b(?:готово|сделано|решено|решил\w*|исправлен\w*|закрыт\w*|разобрал\w+|закончил\w*|договорил\w+)\b",
    "emphasis": r"\b(?:важно|главное|запомни\w*|имей в виду|учти\w*|обрати внимание|итого|короче говоря)\b"
    r"|^(?-i:[А-ЯЁ]{3,}(?: [А-ЯЁ]{2,}){0,3}):\s",
}

_CHINESE: Final[Mapping[Cue, str]] = {
    "correction": r"不对|我说错|更正|改成|而不是|改主意|不再",
    "update": r"(?:推迟|提前|改|调整|延期|增加|减少)(?:到|至|为)|现在是|新的(?:截止|预算|日期|计划|版本|地址)",
    "decision": r"决定|就用|选择了|采用|同意|确定|定下来|批准",
    "rule": r"必须|不得|禁止|绝不|永远不|务必|一律|(?:^|[。：:，,])(?:请)?(?:不要|别|总是|始终)",
    "constraint": (
        r"必须|不能|不要|不得|禁止|只能|最多|至少|不超过|预算|截止|绝不|永远不|一定要|务必|除非|过敏|素食|总是"
    ),
    "identity": r"我叫|我是|我的|我们的|我在|我住|我们公司",
    "preference": r"喜欢|偏好|希望|更愿意|讨厌|想要|需要",
    "plan": r"明天|后天|昨天|下周|上周|下个月|上个月|计划|打算|会议|上线|目标|下一步",
    "commitment": r"提醒我|别忘|待办|我会(?:发|写|检查|做|打电话|准备)|需要(?:做|完成)|答应",
    "open": r"还没(?:决定|确定|定)|不确定|待定|未决|等待|再说",
    "event": r"我(?:们)?(?:去了|买了|做了|见了|完成了|开始了)",
    "result": r"失败|成功|修复|错误|崩溃|已(?:预订|确认|取消|发布|完成)|原因是",
    "closed": r"完成了|解决了|搞定|修好了|已经决定",
    "emphasis": r"重要|记住|注意|关键|总之",
}

PATTERNS: Final[Mapping[Cue, re.Pattern[str]]] = {
    cue: compiled(f"{_ENGLISH[cue]}|{_RUSSIAN[cue]}|{_CHINESE[cue]}", re.IGNORECASE) for cue in _ENGLISH
}

WEIGHTS: Final[Mapping[Cue, float]] = {
    "correction": 1.2,
    "update": 2.0,
    "decision": 2.8,
    "rule": 3.8,
    "constraint": 2.2,
    "identity": 2.5,
    "preference": 1.2,
    "plan": 1.5,
    "commitment": 1.4,
    "open": 2.0,
    "event": 1.2,
    "result": 1.2,
    "closed": 0.2,
    "emphasis": 1.2,
}

IN_WORDS: Final = compiled(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|hundred"
    r"|thousand|dozen|half a|(?:first|second|third|fourth|fifth)(?! (?:of all|time)\b)) [a-z]{3,20}\b"
    rf"|\b(?:(?:last|next|this|every|on) )?{_WEEKDAY}s?\b|\b(?:last|next) (?:week(?:end)?|month|year|summer|winter"
    r"|spring|fall|autumn)\b"
    r"|\b(?:January|February|March|April|June|July|August|September|October|November|December)\b"
    r"|\b(?:два|две|двое|три|трое|четыре|пять|шесть|семь|восемь|девять|десять|двенадцать|двадцать|тридцать|сорок|сто"
    r"|тысяча) [а-яё]{3,20}\b"
    r"|\b(?:по |в |во )?(?:понедельник|вторник|сред[ау]|четверг|пятниц[ау]|суббот[ау]|воскресенье)(?:ам|ник\w*)?\b"
    r"|\b(?:январ|феврал|март|апрел|июн|июл|август|сентябр|октябр|ноябр|декабр)[а-яё]{1,2}\b",
    re.IGNORECASE,
)
"""Counts and times told in words: as exact as a number, though no identifier."""

CODES: Final = compiled(
    r"(?<![\w/@.-])(?=[a-z0-9/_-]{0,60}\d)[a-z][a-z0-9]{0,30}(?:[-/][a-z0-9]{1,30}){1,5}(?![\w/-])"
    r"|(?<!\w)(?=[0-9a-f]{0,40}\d)(?=[0-9a-f]{0,40}[a-f])[0-9a-f]{7,40}(?!\w)"
)
"""Names in small letters with a number in them, as of regions and branches, and abbreviated hashes."""

PLEASANTRY: Final = compiled(
    r"^\W*(?:thanks?|thank you|thx|great|cool|awesome|nice|wonderful|lovely|excellent|wow|sounds"
    r"|good (?:luck|job|to)|well done"
    r"|take care|bye|see (?:you|ya)"
    r"|hey|hi|hello|congrat\w*|you'?re (?:welcome|right|so|doing|awesome|amazing)|glad|no problem"
    r"|happy to|that'?s (?:so|really|great"
    r"|awesome|cool|amazing|wonderful|fantastic|good|nice|a (?:great|good|really)|fine|right|perfect"
    r"|very)|it'?s (?:so|great|amazing|awesome|really)"
    r"|absolutely|exactly|sure|of course|let me know|have (?:a )?(?:great|good|fun|nice)"
    r"|keep (?:it up|up|me posted|going)|way to go|(?:so |super )?proud of|can'?t wait|i (?:hope|bet"
    r"|totally|agree|'?m (?:glad|happy|so (?:happy|glad|proud)))"
    r"|i'?m (?:so |really |very )?(?:glad|happy|proud|sorry|excited|here)|feel free|is there anything"
    r"|anything else|what a|looks? (?:great|amazing|awesome|good)"
    r"|perfect|okay|ok\b|got it|understood|noted|welcome|sorry|apologi\w+|i understand|i see\b|yay"
    r"|woohoo|haha|lol|enjoy|good\b|same here|totally"
    r"|definitely|agreed?[!.]|no worries|wish|aww|love (?:that|it|this)|you (?:rock|got this|can do)"
    r"|спасибо|привет|здравствуй\w*|отлично|супер|класс\b"
    r"|круто|здорово|понятно|понял\w*|хорошо|ок\b|ладно|ага|угу|пожалуйста|удачи|пока\b|до (?:встречи"
    r"|свидания)|рад\w?\b|молодец|договорились[.!]|извини\w*|прости\w*)",
    re.IGNORECASE,
)

FILLER: Final = compiled(
    r"^(?:(?:well|oh|so|yeah|yep|ok(?:ay)?|hey(?: \w+)?|hi(?: \w+)?|hello|hmm+|um+|wow|sure|right"
    r"|alright|great|cool|thanks(?: a lot| so much)?"
    r"|thank you(?: so much)?|haha|lol|by the way|btw|also|anyway|you know|good morning|perfect"
    r"|ну(?: что)?|слушай|ок|кстати|спасибо(?: большое)?|привет"
    r"|здравствуйте|в общем|короче|отлично|хорошо|ладно|так)(?:, [A-ZА-Я]\w{1,20})?[,!.…:;—-]+\s+)+(?=\S)",
    re.IGNORECASE,
)

ACCEPTANCE: Final = compiled(
    r"^\W*(?:yes|yep|yeah|yup|sure|ok(?:ay)?|agreed|sounds (?:good|great|perfect)|perfect|great"
    r"|good idea|go ahead|do it|let'?s do (?:it|that)|deal|fine"
    r"|works for me|that works|please do|absolutely|exactly|confirmed|correct|да|давай(?:те)?|ок"
    r"|хорошо|согласен|согласна|договорились|отлично|конечно|верно|пойдёт|годится)\b",
    re.IGNORECASE,
)
REJECTION: Final = compiled(
    r"^\W*(?:no\b|nope|nah|i'?d rather not|not really|don'?t|i don'?t (?:think|want|like)|rather not"
    r"|never mind|that'?s not|нет\b|не надо|не нужно|не хочу|лучше не|не стоит)",
    re.IGNORECASE,
)
PROPOSAL: Final = compiled(
    r"\b(?:i (?:suggest|propose|recommend|would|'d)|how about|what about|shall (?:we|i)|should (?:we"
    r"|i)|we could|let'?s|you could|would you like|do you want"
    r"|why not|my (?:suggestion|proposal|recommendation)|предлагаю|может(?:е)?,? |давай(?:те)?|лучше"
    r"|стоит|советую|рекомендую|хочешь|хотите)\b",
    re.IGNORECASE,
)
NON_ANSWER: Final = compiled(
    r"\b(?:i (?:do not|don'?t) know|not sure|can'?t (?:say|tell|find)|cannot (?:say|tell|find)"
    r"|let me check|i'?ll (?:check|find out|get back|look into)"
    r"|could you (?:clarify|share|tell)|i find nothing|no idea|(?:is|are) (?:still |yet )?(?:open|undecided)[.,;:]"
    r"|не знаю|не уверен\w*|уточн\w+|проверю|выясню|ничего не нахожу|открыт\w+ вопрос|вопрос (?:пока |ещё |еще )?открыт"
    r"|(?:пока|ещё|еще) не реш(?:ено|или|ён|ен|ена))(?!\w)",
    re.IGNORECASE,
)
STYLE_WISH: Final = compiled(
    r"\b(?:keep (?:it|your answers?|answers|replies|things) (?:short|brief|simple|concise|plain)"
    r"|be (?:brief|concise|short|more \w+|less \w+)|no (?:emojis?|bullet"
    r" points?|jargon|fluff|small talk)|(?:short|brief|shorter|longer|concise|detailed|simple"
    r"|plain) (?:answers?|replies|sentences|explanations?)"
    r"|(?:answer|reply|respond|write|speak|talk) (?:to me )?(?:in|with|without)\b|call me|step by step"
    r"|in plain (?:english|words)|tl;?dr|just the (?:code|facts|answer)"
    r"|(?:stop|don'?t) (?:apologi[sz]\w*|explain\w*|repeat\w*|us(?:e|ing) emojis?)|покороче|кратко"
    r"|коротко|без воды|подробнее|на ты|на вы|по-русски|по-английски|без эмодзи"
    r"|простыми словами|по шагам|отвечай\w*)\b",
    re.IGNORECASE,
)
FRUSTRATION: Final = compiled(
    r"\b(?:frustrat\w+|annoy\w+|ugh+|argh+|wtf|damn|come on|seriously\?|ridiculous|useless|fed up"
    r"|sick of|waste of time|again\?!|already told|i said|as i said|i told you|still (?:not|broken|"
    r"wrong|doesn'?t|failing|nothing|says)|does ?n(?:'?t|ot) (?:work|help)|not what i|wrong again"
    r"|disappoint\w+|unacceptable|terrible|awful|angry|furious|mad at|hate this|outrag\w+"
    r"|бесит|достал\w*|надоел\w*|сколько можно|опять (?:не|ошиб|то же)|снова не"
    r"|ужас\w*|кошмар|раздража\w+|не то\b|издева\w+|злюсь|зол\b|зла\b|возмут\w+|безобрази\w+|невозможно)\b"
    r"|😠|😡|🤬|😤",
    re.IGNORECASE,
)
DISTRESS: Final = compiled(
    r"\b(?:worried|afraid that|nervous|stress\w*|overwhelm\w+|exhaust\w+|upset|sad|tired|desperate|scared"
    r"|волну\w+|пережива\w+|боюсь|устал\w*|вымотал\w*|груст\w+|расстро\w+)\b|😞|😢|😭",
    re.IGNORECASE,
)
RELIEF: Final = compiled(
    r"\b(?:reliev\w+|relief|phew|finally|at last|thank (?:god|goodness|heavens)|weight off|calm(?:er|ed)?|all good now"
    r"|(?:it|that|everything) works(?: now)?|good news|proud|hug\b|hooray|hurrah"
    r"|наконец(?:-то)?|слава богу|уф+|отлегло|полегчало|облегчени\w+|успоко\w+|заработал\w*|получилось|горжусь)\b",
    re.IGNORECASE,
)
NEGATED: Final = compiled(
    r"(?:\b(?:not|no longer|never|hardly|don'?t be|isn'?t|не|больше не|уже не)|n't)\s+$", re.IGNORECASE
)
DELIGHT: Final = compiled(
    r"\b(?:great|awesome|amazing|love(?:ly)?|perfect|excellent|fantastic|wonderful|brilliant|yay"
    r"|excited|happy|glad|haha+|lol|nice|cool|superb|proud|thrilled|grateful|"
    r"отлично|супер|класс(?:но)?|круто|здорово|прекрасно|замечательно|рад|рада|ура|обожаю|шикарно"
    r"|ахаха\w*)\b|😀|😁|😂|🤣|😊|😍|🎉|❤|👍|🙂|😄|[:;]-?\)",
    re.IGNORECASE,
)
POLITE: Final = compiled(
    r"\b(?:please|thanks?|thank you|thx|appreciate|sorry|пожалуйста|спасибо|благодар\w+|будьте добры|извини\w*)\b",
    re.IGNORECASE,
)
INFORMAL: Final = compiled(
    r"\b(?:gonna|wanna|gotta|kinda|lol|haha+|yeah|yep|nope|hey|btw|cuz|u|ur|thx|pls|omg|dunno|ya|'em"
    r"|cool|ок|ага|щас|ща|чё|чо|короче|прикол\w*|норм|ваще|блин|хех|ахах\w*|спс|плиз)\b"
    r"|[\U0001f600-\U0001f64f]|\)\)",
    re.IGNORECASE,
)
EXPLAIN: Final = compiled(
    r"\b(?:what(?:'s| is| are| does)|explain|meaning of|how does|never heard of|(?:don'?t"
    r"|do not) understand|что такое|что значит|объясни\w*|не понимаю|как работает)\b",
    re.IGNORECASE,
)
HEADING: Final = compiled(
    r"(?:(?:USER|HARD|SAFETY|PROJECT|VERY|KEY|MY|OUR) )?(?:NOTE|FACT|RULE|CONSTRAINT|REQUIREMENT|PREFERENCE"
    r"|GOAL(?: STATE)?|STATE|STATUS|INFO|IMPORTANT|REMINDER|REMEMBER|ATTENTION|WARNING|UPDATE|DECISION|CONTEXT|ВАЖНО"
    r"|ФАКТ|ПРАВИЛО|ТРЕБОВАНИЕ|ОГРАНИЧЕНИЕ|ПРЕДПОЧТЕНИЕ|ЦЕЛЬ|ВНИМАНИЕ|ЗАМЕТКА|РЕШЕНИЕ):\s+(?=\S)"
)
"""A heading in capitals that only says what kind of statement follows: what follows is as true without it."""

BOILERPLATE: Final = compiled(
    r"GOOGLE_API_KEY|no language model is configured|языковая модель не подключена", re.IGNORECASE
)
_INDEX: Final = Index()
_BITS: Final = {cue: _INDEX.add(pattern.pattern) for cue, pattern in PATTERNS.items()}
_REMEMBERED: Final = 4_096  # sentences: a chunk is read for its state, and once more for its segments

READING_TOOL: Final = compiled(
    r"^(?:get|list|search|find|read|fetch|query|lookup|look_up|calculate|think|view|open|check"
    r"|retrieve|grep|ls|cat)(?:_|[A-Z]|\b)"
)


@lru_cache(maxsize=_REMEMBERED)
def cues_of(sentence: str) -> frozenset[Cue]:
    """Which kinds of importance a sentence shows."""
    plain = sentence.replace("\u2019", "'")
    opened = _INDEX.open(fold(plain))
    return frozenset(cue for cue, pattern in PATTERNS.items() if _BITS[cue] & opened and pattern.search(plain))
