"""Function words by language, as data: what carries grammar and no content."""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TABLES: Final[Mapping[str, str]] = {
    "en": """a an the and or but if then than so as of at by for with about against between into through during
        before after above below to from up down in out on off over under again further once here there when
        where why how all any both each few more most other some such no nor not only own same too very can will
        just should now i me my myself we us our ours you your yours he him his she her hers it its they them
        their what which who whom this that these those am is are was were be been being have has had having do
        does did doing would could may might must shall let's i'm i've i'd i'll you're you've you'll you'd it's
        that's there's what's he's she's we're we've we'll we'd they're they've don't doesn't didn't isn't
        aren't wasn't weren't won't can't couldn't wouldn't shouldn't haven't hasn't hadn't also because while
        until since""",
    "ru": """и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее её мне было
        вот от меня еще ещё нет о из ему теперь когда даже ну вдруг ли если уже или ни быть был него до вас
        нибудь опять уж вам ведь там потом себя ничего ей может они тут где есть надо ней для мы тебя их чем
        была сам чтоб без будто чего раз тоже себе под будет ж тогда кто этот того потому этого какой совсем ним
        здесь этом один почти мой тем чтобы нее сейчас были куда зачем всех никогда можно при наконец два об
        другой хоть после над больше тот через эти нас про всего них какая много разве три эту моя впрочем
        хорошо свою этой перед иногда лучше чуть том нельзя такой им более всегда конечно всю между это мой
        моего нам наш наши её""",
    "uk": """і й та що не на я з із у в як а то все вона так його але ти до же ви за би по тільки мені було від мене
        ще ні про з його йому коли навіть якщо вже або бути був вас вам там потім себе нічого може вони тут де є
        треба для ми тебе їх чим була сам без тоді хто цей того тому цього який зараз були куди можна при після
        більше через ці нас усе це мій наш""",
    "de": """der die das den dem des ein eine einer eines einem einen und oder aber wenn dann als so wie von vom zu
        zum zur mit bei nach aus für über unter vor hinter durch gegen ohne um an am auf in im ist sind war
        waren sein bin bist hat habe haben hatte hatten wird werden wurde kann können muss müssen soll sollen
        will wollen nicht kein keine auch nur noch schon sehr ich du er sie es wir ihr mich mir dich dir uns
        euch sich mein meine dein unser dass weil ob was wer wo warum hier dort diese dieser dieses jetzt doch
        mal ja nein""",
    "fr": """le la les l un une des du de d et ou mais si alors que qui quoi dont où ce cet cette ces il elle on nous
        vous ils elles je tu me te se mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ne pas
        plus moins très est sont était étaient être suis es sommes êtes ai as a avons avez ont avait pour par
        avec sans sous sur dans en au aux chez comme aussi bien c'est j'ai qu'il n'est d'un d'une parce quand ça
        oui non même fait faire peut""",
    "es": """el la los las un una unos unas de del al y e o u pero si que quien cual como cuando donde por para con
        sin sobre entre hasta desde en a es son era eran ser soy eres somos está están estaba estoy estar fue ha
        he han hay había tiene tengo no ni sí también muy más menos ya yo tú él ella nosotros ellos me te se nos
        le les lo mi mis tu tus su sus nuestro este esta estos estas eso esto ese esa porque qué puede hacer
        todo todos""",
    "it": """il lo la i gli le un uno una di del dello della dei degli delle a al allo alla ai agli alle da dal dalla
        in nel nella nei nelle con su sul sulla per tra fra e ed o ma se che chi cui come quando dove perché è
        sono era erano essere sei siamo siete ho hai ha abbiamo avete hanno non più molto anche già io tu lui
        lei noi voi loro mi ti si ci vi mio mia tuo tua suo sua nostro questo questa questi quello quella cosa
        può fare sono stato""",
    "pt": """o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela para com sem sobre entre até e
        ou mas se que quem qual como quando onde porque é são era eram ser sou está estão estava estou foi tem
        tenho têm há não nem sim também muito mais menos já eu tu ele ela nós eles elas você vocês me te lhe meu
        minha seu sua nosso este esta isso isto esse essa aquele ao à pode fazer tudo""",
    "nl": """de het een en of maar als dan dat die dit deze van voor met bij naar uit over onder door tegen zonder om
        aan op in is zijn was waren ben bent heeft heb hebben had wordt worden werd kan kunnen moet moeten zal
        zullen wil niet geen ook nog al zeer ik jij je hij zij ze wij we jullie mij me jou ons hun mijn jouw
        onze omdat wat wie waar waarom hier daar nu toch wel te er""",
    "pl": """i w we z ze na do nie się że to jest są był była było były być jak ale czy o od za po dla przez przy bez
        pod nad a lub oraz co kto gdzie kiedy dlaczego ja ty on ona my wy oni mnie mi ciebie ci go jej nas nam
        was ich mój moja twój jego ten ta te tego tej tym tak już jeszcze tylko bardzo może można mam masz ma
        mamy jeśli żeby ponieważ więc też""",
    "sv": """och att det som en ett är var på av för med till från om men eller när då så inte kan ska skulle vill
        har hade jag du han hon vi ni de dem mig dig sig min mitt din sin vår den detta dessa där här nu också
        bara mycket vad vem varför hur efter under över utan vid än blir blev man""",
    "tr": """ve bir bu şu o da de için ile ama fakat veya ya çok daha en gibi kadar sonra önce değil var yok mi mı mu
        mü ben sen biz siz onlar bana sana beni seni bizim benim senin onun ne kim nerede neden nasıl her şey
        olarak olan oldu olduğu ki ise hem şimdi evet hayır""",
    "cs": """a i v ve na se si že je jsou byl byla bylo být jako ale nebo z ze do od pro při po za k ke s o u ten ta
        to ty toho tom já ty on ona my vy oni mě mi tě ho jí nás vás jejich můj jak kde kdy proč co kdo který
        která které už ještě jen také velmi může mám má máme pokud aby protože tak""",
    "id": """yang dan di ke dari untuk dengan pada adalah ini itu tidak bukan akan sudah telah bisa dapat harus saya
        aku kamu anda dia kami kita mereka atau tetapi tapi jika kalau karena seperti juga lebih sangat apa
        siapa mana kapan bagaimana ada oleh dalam""",
    "vi": """và của là không có được cho với trong này đó những các một người tôi bạn chúng ta họ nhưng hoặc nếu thì
        vì để khi như rất cũng đã đang sẽ phải gì ai đâu sao làm từ""",
}

STOPWORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(table.split()) for language, table in _TABLES.items()
}
"""Function words by ISO 639-1 code."""

_ENGLISH_CONTENT = frozenset(
    """die man war hat sent fait van fare ten sin mal per as sei am bin ben brief todo todos mine son door
        ada dan ella jen kim mia tom""".split()
)
"""What English says with words that are grammar in other languages; the last row are first names."""

NOISE: Final[frozenset[str]] = frozenset().union(*STOPWORDS.values()) - (_ENGLISH_CONTENT - STOPWORDS["en"])
"""Words of any table that carry no content, whatever the language; English content words are left in."""

GENERIC: Final[frozenset[str]] = frozenset(
    """able actually again ago agree almost already alright always amazing another anyone anything anyway
        around ask asked awesome away back bad best better big bit call came check come coming cool could couple
        day days deal definitely different easy else end enough ever every everyone everything exactly excited
        expect far feel feeling felt find fine first fun get gets getting give given glad go goes going gone
        gonna good got gotta great guess guys haha happen happened happy hard hear heard hello help helped helps
        hey hi hope hopefully idea important instead interesting it'll keep kind kinda know knew last later
        least less let like little live long look looking looks lot lots love loved luck made make makes making
        many matter maybe mean means might mind moment month months much myself need needed needs never new next
        nice nothing ok okay old one ones open part people perhaps please pretty probably problem proud put
        question quick quite read ready real really reason right said say saying says see seem seems seen send
        set show side since small someone something sometimes soon sorry sort sound sounds start started stay
        still stuff such sure take taken taking talk tell thank thanks thing things think thinking thought time
        times today together told tomorrow took totally tried try trying turn two understand use used useful
        using usually via wait wanna want wanted wants way ways week weeks well went whatever will wish without
        won wonderful word work worked working works world worry worth would wow write wrong yeah year years yep
        yes yesterday yet y'all whole super absolutely true ask asking answer answers line lines left plan plans
        image photo picture user assistant inspiring inspired special support care share sharing life enjoy
        enjoyed keeps change changed agree dream dreams journey courage blessed grateful
        motivate motivated motivating strength strong positive appreciate appreciated passion passionate brave beautiful
        impressive incredible fantastic bring brings brought means truly incredible hear matters difference comfort
        peace joy joyful cherish treasure encourage encouraging understanding acceptance
        большой будем будете будешь буду будут быстро важно весь вижу возможно
        вообще вопрос времени время всё говорить говорю год да давай давайте дай дела делать дело день деньги
        должен думаю ещё знаю знаешь значит именно имею интересно кажется какие какого какое кстати круто лет
        ладно либо люди мало может можем могу можешь можете мочь надо назад нам например нормально нужен нужна
        нужно нужны обычно ок окей отлично очень первый план пожалуйста пока понял поняла понятно попробую
        посмотри потом почему правда правильно привет примерно просто прошу пусть работа работает рад рада раз
        сделай сделал сделаем сделать скажи сказал сказать сколько слишком слушай смотри сначала снова совет
        согласен спасибо спросить срочно стоит супер таки такое такой там твой тебе тобой тогда точно туда
        увидел удачи уже хорошо хотел хотела хочешь хочу хотим чтобы чуть что-то что-нибудь кто-то это этом ага
        угу да нет завтра вчера сегодня неделя недели месяц ответ""".split()
)
"""Content words too common in talk to name a topic."""

FRAME: Final[frozenset[str]] = frozenset(
    """user users assistant conversation message said says say asked asks told tells mentioned mentions stated states
        noted reported reports according wrote writes discussed talked currently record client
        пользователь пользователя пользователю пользователем ассистент ассистента ассистенту разговор беседа сообщение
        сказал сказала говорит спросил спросила упомянул упомянула сообщил сообщила рассказал рассказала отметил
        написал написала словам обсудили обсуждали клиент
        用户 助手 nutzer benutzer assistent utilisateur assistant usuario asistente sagte fragte dit dijo""".split()
)
"""The record's own voice: whose words are told, and that they were said."""

TECHNOLOGY: Final[frozenset[str]] = frozenset(
    """airflow android angular ansible api aws azure bash bazel celery clickhouse cloudflare cmake cuda debian django
        docker elasticsearch excel fastapi figma firebase flask flutter gcp git github gitlab golang grafana
        graphql grpc hadoop haskell helm html http https ios java javascript jenkins jira json jwt kafka kotlin
        kubernetes latex linux llm lua mariadb markdown matlab memcached mongo mongodb mysql nginx node
        numpy oauth openai pandas perl php postgres postgresql prometheus pydantic pytest python pytorch
        rabbitmq rails react redis ruby saas scala scikit selenium slack sql sqlalchemy sqlite ssh sso
        stripe supabase svelte tailwind tensorflow terraform tls twilio typescript ubuntu uvicorn valkey
        vue webpack websocket websockets windows wordpress xml yaml постгрес редис докер кубернетес питон линукс
        кафка джанго монго""".split()
)
"""Names of technology that are written like ordinary words, and could not be told by their letters."""
