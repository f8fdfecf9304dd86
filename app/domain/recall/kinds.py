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
        питомец питомцы животное зверь: собака пёс щенок кот кошка котёнок хомяк кролик попугай рыбка черепаха
            лошадь ветеринар корм лапа хвост
        семья родственник родственники родители родня: мама мать папа отец сестра брат сын дочь дочка ребёнок
            дети муж жена дядя тётя бабушка дедушка племянник племянница внук внучка свекровь тёща
        супруг супруга жених невеста брак: муж жена свадьба развод помолвка кольцо парень девушка роман
        ребёнок дети малыш сын дочь: беременна родилась родился роддом младенец коляска садик школа
        работа профессия карьера должность специальность: офис начальник компания коллега зарплата уволился
            собеседование инженер учитель врач медсестра юрист дизайнер программист повар продавец бухгалтер клиент
            отдел руководитель повышение стажировка резюме директор
        бизнес фирма предприятие дело компания: магазин студия мастерская клиент заказ стартап аренда помещение
        учёба образование школа университет институт: курс студент учитель экзамен диплом класс лекция урок
            преподаватель сессия диссертация
        хобби увлечение занятие отдых интерес: рисование рисую вязание сад чтение готовка поход плавание бег
            велосипед танцы пение фотография рыбалка игра шахматы йога лыжи фехтование коллекция
        спорт тренировка секция: зал бег марафон футбол баскетбол теннис хоккей плавание йога бокс фехтование
            лыжи коньки борьба тренер матч турнир соревнование
        природа: лес озеро река горы море парк поход палатка костёр берег
        музыка музыкант инструмент: гитара пианино фортепиано скрипка барабан флейта аккордеон баян рояль
            виолончель группа песня певец певица концерт альбом оркестр
        искусство творчество художник: картина рисунок скульптура керамика холст галерея выставка музей краски
        книга чтение литература писатель писательница автор: роман рассказ детектив повесть глава стихи
            библиотека
        фильм кино сериал: кинотеатр серия актёр актриса режиссёр комедия драма премьера
        игра: приставка настольная карты шахматы уровень
        еда блюдо кухня продукты: ужин обед завтрак рецепт пицца паста суши салат суп курица мясо рыба рис хлеб
            сыр торт печенье пирог шоколад борщ пельмени блины каша картошка огурцы помидоры овощи фрукты варенье
            ресторан кафе
        сладкое десерт выпечка: торт пирог печенье шоколад мороженое варенье конфеты булочка
        напиток напитки: кофе чай вино пиво сок квас вода лимонад
        диета питание: вегетарианец веган калории сахар глютен аллергия худеть
        путешествие поездка отпуск каникулы праздники: самолёт рейс аэропорт отель гостиница море пляж виза
            город поезд билет чемодан экскурсия граница
        место город адрес: улица район дом деревня переехали площадь центр посёлок
        жильё дом квартира недвижимость переезд: однушка двушка комната аренда ипотека ремонт кухня спальня
            балкон лоджия этаж сосед дача хозяйка
        мебель: стол стул диван кровать шкаф полка матрас лампа
        здоровье болезнь самочувствие: врач больница операция диагноз боль грипп температура аллергия травма
            лекарство таблетки простуда кашель анализы давление
        больница клиника: роддом врач палата операция выписали скорая поликлиника
        травма: сломал перелом ушиб нога рука колено гипс упал
        чувства настроение эмоции: рад счастлив грустно плакал страшно обижен злой волнуюсь устал тоска
        деньги цена стоимость расходы: рубль рублей доллар тысяча тысячи миллион бюджет зарплата кредит долг
            банк дорого дёшево ипотека оклад процент ставка
        купить покупка: магазин заказ скидка рынок продал
        машина автомобиль транспорт: автобус поезд метро велосипед мотоцикл такси гараж ремонт пробег резина
            двигатель прицеп
        прибор устройство техника гаджет: телефон планшет компьютер ноутбук камера наушники принтер сканер экран
            часы
        связь сообщение: звонок звонил письмо написал чат телефон
        одежда обувь наряд форма экипировка: платье рубашка пальто куртка брюки юбка свитер туфли сапоги ботинки
            кроссовки шапка шарф костюм
        украшение: кольцо серьги браслет цепочка часы
        растение сад огород: цветы дерево роза рассада помидоры грядка теплица семена урожай
        погода: дождь снег мороз жара ветер гроза градус градусов минус солнце
        праздник событие торжество: день рождения свадьба юбилей концерт фестиваль вечеринка годовщина гости
        подарок: подарил подарила подарили сюрприз букет
        цвет: красный синий зелёный жёлтый чёрный белый розовый серый коричневый оранжевый
        возраст: лет год старше младше
        прозвище имя: назвал назвали зовут
        проблема поломка недостаток минус: сломался сломалась ошибка течёт шумный битый дорогой
    """,
    "zh": """
        宠物 动物: 小狗 狗狗 猫咪 小猫 兔子 金鱼 鹦鹉 乌龟 仓鼠 狗 猫 鸟
        家人 亲戚 家庭 亲人: 妈妈 爸爸 姐姐 妹妹 哥哥 弟弟 儿子 女儿 丈夫 妻子 爷爷 奶奶 外公 外婆
            叔叔 阿姨 表哥 表妹
        伴侣 对象 婚姻: 丈夫 妻子 老公 老婆 男友 女友 结婚 婚礼 恋爱 求婚 离婚
        孩子 小孩: 儿子 女儿 宝宝 怀孕 出生 幼儿园
        工作 职业 职位: 公司 老板 同事 工资 老师 医生 律师 工程师 设计师 程序员 护士 会计 面试 入职
            辞职 加班 上班 升职 经理 项目
        待遇 收入 工资 薪水: 万 千 奖金 加班
        公司 生意 企业: 客户 开店 老板 创业 投资 店铺
        学习 学校 教育: 老师 同学 考试 作业 论文 毕业 大学 专业 上课 导师 课程
        爱好 兴趣 活动: 画画 跑步 游泳 爬山 露营 唱歌 跳舞 摄影 下棋 瑜伽 钓鱼 看书 做饭
        运动 锻炼: 跑步 足球 篮球 网球 游泳 健身 马拉松 瑜伽 走路 散步 爬山 骑车 羽毛球 跳舞
        大自然 户外: 山 湖 海 江 河 公园 森林 露营
        音乐 乐器 曲子 歌曲: 吉他 钢琴 小提琴 鼓 唱歌 乐队 专辑 演唱会
        艺术: 画 展览 博物馆 雕塑 书法
        书 书籍 杂志 期刊 阅读: 小说 作者 学报 出版 图书馆 章
        电影 节目 电视: 剧 导演 演员 电影院
        游戏: 手机 电脑 打牌 麻将
        食物 菜 晚饭 午饭 早饭 美食 吃: 披萨 面条 米饭 沙拉 蛋糕 巧克力 鸡肉 牛肉 饺子 火锅 面 汤 鱼
            包子 烧烤 餐厅
        饮料 喝: 咖啡 茶 啤酒 果汁 牛奶 水
        甜点 甜食: 蛋糕 糕 巧克力 冰淇淋 饼干 糖
        旅行 旅游 度假 出行: 飞机 酒店 海边 机场 火车 高铁 行李 签证 票 航班 景点
        地方 城市 地点: 街 路 区 省 搬 北京 上海 广州 深圳 杭州 成都 武汉 西安
        住处 房子 家 住: 租 室 厅 阳台 房东 小区 楼 搬家 公寓 装修
        健康 疾病 生病 身体: 医生 医院 手术 感冒 发烧 过敏 受伤 体检 血压 血糖 药 疼
        心情 感受: 高兴 开心 难过 哭 担心 害怕 累 生气 紧张
        钱 费用 价格 花费: 元 块 万 千 便宜 贵 租金 押金 贷款 存款 借
        购买 买: 店 商场 网购 打折 下单
        礼物 送: 生日 围巾 红包 惊喜
        交通 汽车 车: 公交 地铁 火车 高铁 自行车 摩托车 出租车 打车 开车
        设备 电子: 手机 电脑 相机 耳机 手环 硬盘 屏幕 音箱 软件
        软件 程序 应用: 小程序 代码 上线 系统 网站 功能 开发
        衣服 服装: 裙子 衬衫 外套 鞋 帽子 围巾 裤子
        颜色: 红 蓝 绿 黄 黑 白 粉 紫 灰
        天气: 雨 雪 热 冷 风 晴
        节日 庆祝 聚会: 生日 婚礼 春节 过年 中秋 国庆 除夕 生日会
        植物 花园: 花 树 种 叶子
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
        идти шёл пошёл ходил ходить / ехать поехал ездил поехать едет / купить купил покупка покупать купли /
        ребёнок дети ребята / человек люди / мама мать матери мамин / папа отец отца папин / брать взял взять
        взяла / говорить сказал сказать сказала / фото фотография снимок / машина автомобиль авто тачка /
        хороший лучший / телефон мобильник / компьютер ноутбук / работа работать служба / бабушка бабуля /
        дедушка дед / жена супруга / муж супруг / каникулы отпуск праздники / дом квартира жильё / квартира
        однушка двушка / переезд переехать переехали переезжать / новый новоселье / начать начал начинать старт
        / закончить закончил завершить / продать продал продажа / стоить стоила цена стоимость обошёлся /
        потратить расходы бюджет / потерять потеряли пропала пропал исчез / найти нашла нашёл нашли нашлась
        обнаружил / дать отдал одолжил одолжить / возьми одолжи взаймы / придумать идея мысль задумать задумала
        замысел / открыть открыла открываюсь открытие открывается / родить родилась родился рождение / свадьба
        женитьба жениться / подарить подарок подарил / друг подруга приятель товарищ / начальник руководитель
        босс шеф директор возглавил / подчинённый отдел команда / врач доктор / больница роддом клиника
        госпиталь / еда кушать есть поесть / пить выпить / болеть болезнь больной заболел температура простуда /
        любить нравиться обожать / жить живёт проживать / учиться учёба / деньги зарплата оклад / холодно мороз
        минус / жарко жара / большой огромный / маленький небольшой / весить вес килограмм / возраст лет /
        юбилей годовщина / сорок 40 / один 1 / два 2 / три 3 / четыре 4 / пять 5 / шесть 6 / семь 7 / восемь 8 /
        девять 9 / десять 10 / сотрудник коллега / совет посоветовать посоветовал рекомендовать / решить решили
        решение / ждать ждём ожидать / помочь помог помогла помощь / поломка сломать сломался / ремонт починить
        чинить / собака пёс / кошка кот / велосипед велик / магазин лавка / поездка путешествие съездить /
        александр саша шура саня / алексей лёша / анастасия настя / андрей андрюша / анна аня нюра / антон
        антоша / валентина валя / варвара варя / василий вася / виктор витя / виктория вика / владимир вова
        володя / вячеслав слава / галина галя / георгий гоша жора / григорий гриша / дарья даша / дмитрий дима
        митя / евгений женя / екатерина катя / елена лена алёна / елизавета лиза / иван ваня / ирина ира /
        константин костя / лариса лара / людмила мила / мария маша маруся / михаил михаилу миша мишка / надежда
        надя / наталья наташа / никита никитка / николай коля / ольга оля / павел паша / пётр петя / роман рома
        / светлана света / сергей серёжа / софья соня / станислав стас / таисия тася / татьяна таня / фёдор федя
        / юлия юля / юрий юра / яков яша
    """,
    "zh": """
        妈 妈妈 母亲 / 爸 爸爸 父亲 / 奶奶 祖母 / 爷爷 祖父 / 姐 姐姐 / 妹 妹妹 / 哥 哥哥 /
        弟 弟弟 / 男友 男朋友 / 女友 女朋友 / 丈夫 老公 / 妻子 老婆 / 火车 列车 高铁 动车 /
        飞机 航班 / 晚点 延误 / 手机 电话 / 电脑 计算机 / 照相机 相机 / 房租 租金 / 买 购买 购
        / 卖 出售 / 便宜 廉价 / 钱 费用 花费 块 元 / 工资 薪水 待遇 收入 / 上班 入职 工作 /
        辞职 离职 / 老板 领导 上司 / 导师 教授 老师 / 医生 大夫 / 生病 患病 / 吃 用餐 / 喜欢
        爱 喜爱 / 高兴 开心 快乐 / 难过 伤心 / 住 居住 / 搬 搬家 搬迁 / 旅行 旅游 出游 / 打鼾
        打呼噜 / 要求 条件 / 发布 上线 推出 / 借 借用 / 修 修理 维修 / 坏 损坏 故障 / 送 赠送
        礼物 / 抵达 到达 / 出发 离开 / 结束 完成 / 生日 诞辰 / 婚礼 结婚 / 恋爱 谈恋爱 男友
        女友 / 孩子 小孩 宝宝 / 领队 队长 / 论文 文章 / 杂志 期刊 学报 / 野外 考察 / 春节 过年
        新年 / 中秋 中秋节 / 店 商店 铺 / 照片 相片 / 电影 影片 / 歌 歌曲 曲子 / 减肥 瘦 /
        锻炼 运动 健身
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
