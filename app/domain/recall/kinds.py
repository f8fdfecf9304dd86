"""Words of a kind, by general knowledge: "pets" is answered by "dog". Data, by language: another language is a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from app.domain.words.text import stems

KINDS: Final[Mapping[str, str]] = {
    "en": """
        pet animal: dog puppy pup cat kitten kitty hamster rabbit bunny parrot bird fish turtle snake horse
            guinea lizard vet leash breed paw fur
        family relative parent sibling relationship: mom mum mother dad father sister brother daughter kid child
            husband wife uncle aunt cousin grandma grandmother grandpa grandfather nephew niece baby toddler
            twins
        partner spouse marry marriage wedding: husband wife fiance boyfriend girlfriend engaged bride groom date
        child kid children: daughter baby toddler boy girl teen
        job work career profession occupation employment living: office boss company colleague coworker manager
            salary hired fired promotion interview shift engineer teacher nurse doctor lawyer designer developer
            banker accountant chef waiter barista writer internship resume employer startup business client quit
        business company startup venture: store shop studio customer launch brand investor sell market
        education study school degree college university: class course student teacher exam graduate graduation
            diploma major campus professor homework lecture semester scholarship tutor learn master phd
        hobby pastime interest activity activities leisure fun enjoy free: paint painting draw drawing pottery
            knit sew garden gardening read reading cook bake baking hike hiking camp camping swim swimming run
            running bike biking cycle dance dancing sing photography fish fishing game gaming chess yoga climb
            surf ski skate kayak craft museum concert movie picnic volunteer
        sport exercise workout fitness athletic train: gym run running jog marathon race soccer football
            basketball baseball tennis golf hockey volleyball swim swimming yoga pilates boxing taekwondo karate
            weight lift climb cycling ski surf team coach score match tournament kickboxing hike
        outdoor nature outside: hike hiking camp camping trail mountain forest lake river beach park woods tent
            campfire garden sunset waterfall kayak picnic
        music musician musical instrument: guitar piano violin drum clarinet flute cello saxophone ukulele
            trumpet band song singer concert album playlist gig jazz rock pop classical orchestra lyric melody
            tune sing
        art artistic creative artwork artist: paint painting draw drawing sketch sculpture pottery clay canvas
            watercolor gallery exhibition museum mural portrait craft ceramic photography design poetry
        book read reading literature author novel: library chapter story fiction fantasy memoir biography poem
            poetry page series writer bookstore mystery trilogy
        movie film show watch television series: cinema tv netflix episode season actor actress director trilogy
            comedy thriller documentary anime drama scene theater premiere
        game gaming play console: video board chess card xbox playstation nintendo switch controller multiplayer
            level quest tournament puzzle rpg dungeon strategy
        food meal eat dish cuisine dinner lunch breakfast snack cook recipe: pizza pasta sushi salad soup
            chicken beef fish rice bread cheese cake cookie pie chocolate burger taco curry noodle sandwich
            steak vegetable fruit dessert bake roast grill ingredient delicious tasty restaurant icecream
            pancake
        dessert sweet treat bake: cake cookie pie chocolate icecream brownie muffin cupcake pastry donut tart
        drink beverage: coffee tea wine beer cocktail juice smoothie soda water milk latte espresso whiskey
        diet nutrition healthy: vegan vegetarian gluten dairy calorie protein sugar vegetable salad allergy
        travel trip vacation holiday visit journey tour destination abroad country: flight fly plane airport
            hotel beach resort cruise roadtrip passport visa city paris london rome tokyo italy france spain
            japan canada mexico europe asia mountain island suitcase itinerary sightseeing backpack hostel
        place city town location live country state hometown: moved move apartment house neighborhood street
            downtown suburb village
        home house apartment live move residence: rent roommate landlord lease mortgage bedroom kitchen backyard
            garden neighborhood furniture renovate
        health illness sick medical condition disease problem: doctor hospital clinic surgery diagnosis
            diagnosed pain ache flu fever cold allergy asthma diabetes cancer injury injured hurt sprain broken
            medicine medication pill therapy therapist checkup symptom recover headache
        injury hurt accident: broke broken sprain ankle knee hospital fell crash cast bruise
        mental emotion feeling stress wellbeing cope: anxiety anxious depressed depression therapy therapist
            counseling meditation meditate stressed overwhelmed nervous lonely sad burnout mindfulness journal
            breathe calm relax
        relax destress unwind: bath spa massage walk read music meditate yoga nap tea sunset
        happy joy excited glad: thrilled delighted proud cheerful stoked pumped smile
        sad upset grief loss: cry died passed funeral heartbroken miss lost mourn devastated
        afraid fear scared worry: nervous anxious phobia terrified panic
        die death pass away: died dead funeral grave lost grief passed
        money finance financial cost price pay: dollar buck euro pound budget salary loan debt mortgage savings
            bank invest rent expensive cheap bill afford
        buy purchase shop get: bought store mall order sale purchased
        gift present give: gave birthday christmas surprise necklace ring card bought received
        vehicle car transport drive transportation commute: bus train subway bike bicycle motorcycle truck taxi
            uber scooter drove engine garage repair mechanic prius toyota honda ford
        device gadget technology tech electronics computer: phone laptop tablet camera headphone watch app
            software website screen keyboard printer drone robot
        phone call contact message: text email chat number talked
        clothes clothing wear outfit fashion: dress shirt shoe sneaker jacket coat hat jeans skirt suit sweater
            boot scarf jewelry necklace ring
        jewelry accessory: necklace ring bracelet earring pendant watch
        furniture decor: couch sofa chair table bed lamp desk shelf rug painting
        plant garden flower: tree rose sunflower tomato herb seed soil succulent orchid tulip vegetable water
            bloom
        weather climate: rain snow storm sunny cold hot wind cloud hurricane flood
        event celebration celebrate party occasion festival: birthday wedding anniversary christmas thanksgiving
            halloween easter concert parade graduation reunion gathering ceremony conference festival workshop
        meet meeting group community club: meetup member join gathering joined team friend network organization
        volunteer charity help cause donate community: shelter homeless donation fundraiser nonprofit mentor
            raise awareness campaign cleanup
        religion religious faith spiritual belief: church god pray prayer mosque temple bible faith christian
        politics political government: election vote campaign mayor senator president law policy party office
            council
        military army veteran: soldier navy marine deployed war serve
        language speak: english spanish french german italian japanese chinese korean learn fluent translate
        color colour: red blue green yellow purple pink orange black white brown gray grey
        goal plan dream ambition future aspiration aspire want intend: hope hoping someday planning save apply
            dream open become
        advice suggest recommend recommendation tip: try maybe consider idea worth
        opinion think feel view: believe love hate favorite awesome amazing
        favorite favourite prefer like love best: enjoy fave fan prefer adore
        dislike hate: annoying awful terrible worst
        friend friendship buddy: pal bestie bff mate roommate neighbor hang
        learn skill teach lesson: class course practice workshop tutorial taught teacher
        write writing writer author: screenplay script novel story blog journal poem book article draft publish
        award prize win won contest competition tournament: trophy medal champion finalist prize
        challenge difficulty struggle problem obstacle hard: tough issue setback trouble rough stress fail
        achievement success accomplish milestone: won finished completed proud graduated promoted award
        start begin began: started launch open
        finish end stop quit: done completed gave
        create make build: made built designed wrote painted crafted diy
        picture photo photograph image: camera pic shot snapshot selfie portrait
        age old birthday born: turned year birthday years
        sleep tired rest: nap insomnia bed exhausted awake
        inspire inspiration motivate motivation: encourage influence spark
        support supportive help: encourage listen helped stand backing
        origin ethnicity roots nationality: country born immigrant heritage grandparents
        wildlife animal: bear deer fox wolf whale dolphin eagle elephant bird
        tool software program language code: python java javascript programming app website developer database
            bug
        website online internet social media: instagram facebook twitter tiktok youtube blog vlog post follower
            podcast
        subject topic course class: math science history biology chemistry physics psychology economics
            philosophy
        martial art: karate taekwondo judo boxing kickboxing jiujitsu
        dance dancing dancer: ballet salsa hiphop contemporary ballroom choreography studio recital tango
        season time: spring summer autumn fall winter
        natural disaster emergency: earthquake flood hurricane tornado fire storm tsunami evacuate
        crime police: stolen robbed thief arrested theft burglary
        legal law court: lawyer judge attorney trial sue contract
        damage repair fix: broke broken leak crash flood replace mechanic plumber
        lose lost miss missing: found search forgot gone
        body part: arm leg knee ankle back shoulder head hand foot neck wrist hip eye tooth
        doctor professional specialist: dentist surgeon therapist physician cardiologist nurse dermatologist
        habit routine daily practice: morning evening everyday regularly schedule week
        project assignment task: deadline prototype research report presentation design build finish
        meeting appointment schedule: monday tuesday wednesday thursday friday calendar reschedule
        conference seminar workshop talk: speech panel presentation speaker keynote lecture
        symbol meaning represent symbolize: remind mean reminder strength love freedom
        memory remember childhood nostalgia: kid young used remind grew grandma old
        personality trait character attribute describe: kind caring thoughtful brave honest patient funny
            generous driven strong
        attend attended went visit: joined going participate
        participate join take part: joined signed entered attended competed
        organize host plan arrange: hosted organized throwing invite planning
        change transform transition: switch different grow became journey
        reason motive: decide reason inspire
        decide choose decision choice: chose picked settled went chosen
        relationship date dating romantic: girlfriend boyfriend crush ex breakup single marry
        argue conflict fight: argument disagree upset broke apologize
        weapon: gun sword knife bow
        view scenery landscape: sunset sunrise mountain lake ocean valley breathtaking gorgeous
        collect collection: coin stamp card vinyl record figure comic sneaker memorabilia
        superhero fantasy character: batman spiderman superman marvel wizard dragon elf hobbit star wars
        allergy allergic: nut peanut dairy lactose pollen cat fur gluten shellfish
        chore household clean: laundry dish vacuum wash mop declutter tidy
        hair appearance look: haircut beard blonde curly dyed tattoo glasses makeup
        size measure dimension: small large tall wide inch foot meter pound kilo
        beach ocean sea: surf wave sand coast swim shore sail
    """,
    "ru": """
        питомец питомцы животное: собака щенок кот кошка котёнок хомяк кролик попугай рыбка черепаха лошадь ветеринар
        семья родственник родители: мама мать папа отец сестра брат сын дочь ребёнок дети муж жена дядя тётя
            бабушка дедушка племянник
        работа профессия карьера должность: офис начальник компания коллега зарплата уволился собеседование
            инженер учитель врач юрист дизайнер программист повар бизнес клиент
        учёба образование школа университет: курс студент учитель экзамен диплом класс институт лекция
        хобби увлечение занятие отдых: рисование рисую вязание сад чтение готовка поход плавание бег велосипед
            танцы пение фотография рыбалка игра шахматы йога лыжи
        спорт тренировка: зал бег марафон футбол баскетбол теннис хоккей плавание йога бокс тренер матч турнир
        музыка инструмент: гитара пианино скрипка барабан флейта группа песня певец концерт альбом
        искусство творчество: картина рисунок скульптура керамика холст галерея выставка музей
        книга чтение: роман рассказ автор глава стихи библиотека
        фильм кино сериал: кинотеатр серия актёр режиссёр комедия
        еда блюдо ужин обед завтрак рецепт: пицца паста суши салат суп курица мясо рыба рис хлеб сыр торт
            печенье пирог шоколад борщ пельмени ресторан
        напиток: кофе чай вино пиво сок
        путешествие поездка отпуск: самолёт рейс аэропорт отель гостиница море пляж виза город поезд билет
            чемодан
        здоровье болезнь: врач больница операция диагноз боль грипп температура аллергия травма лекарство
        деньги цена стоимость: рубль доллар бюджет зарплата кредит долг банк дорого дёшево
        машина транспорт: автобус поезд метро велосипед мотоцикл такси гараж ремонт
        подарок: подарил подарила день рождения сюрприз
        праздник событие: день рождения свадьба юбилей концерт фестиваль вечеринка
        цвет: красный синий зелёный жёлтый чёрный белый розовый
    """,
    "zh": """
        宠物 动物: 小狗 狗狗 猫咪 小猫 兔子 金鱼 鹦鹉 乌龟 仓鼠
        家人 亲戚 家庭: 妈妈 爸爸 姐姐 妹妹 哥哥 弟弟 儿子 女儿 丈夫 妻子 爷爷 奶奶
        工作 职业: 公司 老板 同事 工资 老师 医生 律师 工程师 设计师 程序员
        爱好 兴趣 活动: 画画 跑步 游泳 爬山 露营 唱歌 跳舞 摄影 下棋 瑜伽 钓鱼
        运动 锻炼: 跑步 足球 篮球 网球 游泳 健身 马拉松 瑜伽
        音乐 乐器: 吉他 钢琴 小提琴 鼓 唱歌 乐队 专辑
        食物 菜 晚饭 午饭 早饭: 披萨 面条 米饭 沙拉 蛋糕 巧克力 鸡肉 牛肉 饺子 火锅
        旅行 旅游 度假: 飞机 酒店 海边 机场 火车 行李 签证
        健康 疾病 生病: 医生 医院 手术 感冒 发烧 过敏 受伤
        交通 汽车: 公交 地铁 火车 自行车 摩托车 出租车
    """,
}
"""Words that ask for a kind, a colon, words of that kind."""

FORMS: Final[Mapping[str, str]] = {
    "en": """
        go went gone / buy bought purchase / take took taken / give gave given / make made / get got gotten /
        see saw seen / meet met / win won / write wrote written / run ran / eat ate eaten / teach taught / think
        thought / feel felt feeling / lose lost / find found / begin began begun / build built / break broke
        broken / choose chose chosen choice / leave left / sell sold / speak spoke spoken / spend spent / grow
        grew grown / swim swam / drive drove driven / fly flew flight / hear heard / keep kept / send sent /
        tell told / wear wore worn / sing sang sung song / draw drew drawn / fall fell fallen / child children
        kid kiddo / wife wives / knife knives / life lives / leaf leaves / hold held / bring brought / catch
        caught / ride rode ridden / sleep slept / fight fought / die died dead death / say said / know knew
        known / become became / hurt injure / pay paid / lead led / steal stole stolen / throw threw thrown /
        wake woke / sit sat / stand stood / forget forgot forgotten / hide hid / do did done / come came / dream
        dreamt / learn learnt / feed fed / bake baker bakery / marry marriage married wedding / mother mom mum
        mommy mama / father dad daddy papa / grandmother grandma granny nana / grandfather grandpa / brother bro
        / sister sis / husband hubby / photo photograph picture pic image / movie film / television tv /
        favorite favourite fav fave / birthday bday / vacation vacay holiday / bicycle bike / refrigerator
        fridge / color colour / apartment flat / doctor dr doc / university uni college / dog doggo puppy pup /
        cat kitty kitten / mathematics math maths / advertisement ad / laboratory lab / gymnasium gym /
        automobile car / telephone phone / application app / probably prob / thanks thank thx / people ppl /
        tomorrow tmrw tmr / tonight tonite / love luv / great gr8 / girlfriend gf / boyfriend bf / friend buddy
        pal / conversation convo / chat talk / begin start / job work / trip travel journey / present gift / big
        large huge / ill sick unwell / scared afraid fear / buy purchase / kids child / restaurant diner / road
        roadtrip / decide decision / destroy destruction / recommend suggest recommendation suggestion / choose
        pick / receive got / relocate move / reside live / assist help / repair fix / shop store / tired
        exhausted / difficult hard tough / happy glad / sad unhappy / attend went / acquire got / enjoy love
        like / purchase got bought / occur happen / discuss talk / mention said / engage engagement propose /
        pregnant pregnancy baby expecting / one 1 / two 2 / three 3 / four 4 / five 5 / six 6 / seven 7 / eight
        8 / nine 9 / ten 10 / dozen 12
    """,
    "ru": """
        идти шёл пошёл ходил / ехать поехал ездил / купить купил покупка / ребёнок дети / человек люди / мама
        мать / папа отец / брать взял взять / говорить сказал сказать / фото фотография снимок / машина
        автомобиль / хороший лучший / телефон мобильник / компьютер ноутбук / работа работать
    """,
}
"""Forms that no ending tells, spellings of chats, and words that mean the same; between strokes."""

_KIND: Final = re.compile(r"([^:]+):([^:]+)(?=\n|\Z)")

Related = Mapping[str, frozenset[str]]


def of_kind(stem: str) -> frozenset[str]:
    """Stems of the kind that a stem asks for."""
    return _of_kind().get(stem, frozenset())


def akin(stem: str) -> frozenset[str]:
    """Stems of the same kind as a stem, and those that ask for it."""
    return _akin().get(stem, frozenset())


def forms_of(stem: str) -> frozenset[str]:
    """Stems of other forms of a word, and of words that mean the same."""
    return _forms().get(stem, frozenset())


@cache
def _of_kind() -> Related:
    return _related((asking, {*asking, *kind}) for asking, kind in _kinds())


@cache
def _akin() -> Related:
    return _related((kind, {*asking, *kind}) for asking, kind in _kinds())


@cache
def _forms() -> Related:
    groups = (frozenset(stems(group)) for text in FORMS.values() for group in text.split("/"))
    return _related((group, group) for group in groups)


def _kinds() -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for text in KINDS.values():
        for asking, kind in _KIND.findall(text):
            yield frozenset(stems(asking)), frozenset(stems(kind))


def _related(given: Iterable[tuple[Iterable[str], Iterable[str]]]) -> Related:
    found: dict[str, set[str]] = {}
    for words, others in given:
        for word in words:
            found.setdefault(word, set()).update(others)
    return {word: frozenset(others - {word}) for word, others in found.items()}
