"""Pairs of statements as people make them: which later statement replaces the earlier one, and which does not."""

from __future__ import annotations

import pytest

from app.core.anchors import antecedents, replacement
from tests.rows import each
from tests.unit.test_anchors_choices import remembered
from tests.unit.test_anchors_transitions import statuses

BESIDE = [
    ("Gate 12 is closed until May.", "Gate 14 is closed until May."),
    ("Our gate 12 is closed.", "Our gate 14 is closed."),
    ("Fact: ap-south-2 hosts the database.", "Fact: us-east-1 hosts the database."),
    ("Fact: invoice A-100 is paid.", "Fact: invoice A-101 is paid."),
    ("The server web-1 runs on port 8080.", "The server web-2 runs on port 8080."),
    ("Let's use dark mode.", "Actually, let's use Postgres."),
    ("Let's use dark mode", "Actually, let's use Postgres"),
    ("Let's take the train for the way out.", "Actually, let's take the bus for the way back."),
    ("Let's book the 9:15 train for the way out.", "Let's book the 18:40 train for the way back."),
    ("For the way out we decided on the ferry.", "For the way back we decided on the train."),
    ("Let's paint the kitchen blue.", "Actually, let's paint the bathroom green."),
    ("Let's use Postgres for production.", "Actually, let's use SQLite for staging."),
    ("The staging server runs on port 8080.", "The production server runs on port 9090."),
    ("The staging database is at 10.0.0.5.", "The production database is at 10.0.0.9."),
    ("Lunch is at 12:30.", "Dinner is at 19:00."),
    ("Let's order pizza for lunch.", "Actually, let's order sushi for dinner."),
    ("Let's book a table at Luigi's for lunch.", "Actually, let's book a table at Kyoto for dinner."),
    ("Let's use React for the frontend.", "Actually, let's use Django for the backend."),
    ("The frontend deadline is March 3.", "The backend deadline is March 17."),
    ("The first floor is rented to Acme.", "The second floor is rented to Bolt."),
    ("We decided on oak floors for the first floor.", "We decided on tiles for the second floor."),
    ("The meeting on the first floor is in room 12.", "The meeting on the second floor is in room 27."),
    ("My birthday is May 3.", "My wife's birthday is June 7."),
    ("My phone number is 555-1234.", "My wife's phone number is 555-9876."),
    ("My flight leaves at 10:30.", "My wife's flight leaves at 12:45."),
    ("My salary is $5,000.", "My husband's salary is $6,200."),
    ("Anna's budget is $500.", "Ben's budget is $700."),
    ("Anna arrives on May 3.", "Ben arrives on May 5."),
    ("The marketing budget is $10,000.", "The sales budget is $12,000."),
    ("The deadline for marketing is May 3.", "Actually, the deadline for sales is May 10."),
    ("The first payment is due on May 3.", "The second payment is due on June 3."),
    ("Step 1 takes 10 minutes.", "Step 2 takes 25 minutes."),
    ("In step 1 we use Python 3.11.", "In step 2 we use Python 3.12."),
    ("Phase one ends on May 3.", "Phase two ends on July 9."),
    ("The adult ticket costs $40.", "The child ticket costs $25."),
    ("The rent is $1,200.", "The deposit is $2,400."),
    ("The download limit is 50 GB.", "The upload limit is 20 GB."),
    ("The minimum age is 18.", "The maximum age is 65."),
    ("Check-in is at 15:00.", "Check-out is at 11:00."),
    ("The outbound flight is LH400.", "The return flight is LH401."),
    ("The morning session starts at 9:00.", "The afternoon session starts at 14:00."),
    ("Team A uses Slack.", "Team B uses Zulip."),
    ("Server alpha has 16 GB of RAM.", "Server beta has 32 GB of RAM."),
    ("The Berlin office opens at 8:00.", "The Paris office opens at 9:00."),
    ("Let's meet the designers on Monday.", "Let's meet the lawyers on Tuesday."),
    ("Let's book the hotel for Monday.", "Actually, let's book the car for Tuesday."),
    ("Let's use Figma.", "Actually, let's use Friday for the review."),
    ("Let's go with the blue logo.", "Actually, let's go with a bigger font."),
    ("Let's go with tabs.", "Actually, let's go with Kubernetes."),
    ("Let's use two-space indentation.", "Actually, let's use MySQL."),
    ("Let's use Helvetica.", "Actually, let's use Kafka."),
    ("Let's go with the monthly plan.", "On second thought, let's go with Redis."),
    ("Let's keep the header.", "No, MySQL."),
    ("Let's set the timeout to 30 seconds.", "Let's set the retry count to 5."),
    ("Let's set the read timeout to 30 seconds.", "Actually, let's set the write timeout to 60 seconds."),
    ("Let's set the timeout to 30 seconds.", "Actually, let's set the batch size to 500."),
    ("The API key for Stripe is in /etc/stripe.key.", "The API key for Twilio is in /etc/twilio.key."),
    ("My doctor is Dr. Adams.", "My dentist is Dr. Baker."),
    ("My manager is Carla.", "My lawyer is Diego."),
    ("My son is called Tom.", "My daughter is called Mia."),
    ("My sister lives in Oslo.", "My brother lives in Bergen."),
    ("I'm allergic to peanuts.", "My son is allergic to shellfish."),
    ("We decided to repaint the office.", "We decided to replace the carpet."),
    ("We decided to hire Anna.", "We decided to hire Ben."),
    ("We'll use AES for files.", "Actually, we'll use RSA for keys."),
    ("The wedding is on June 5.", "The rehearsal is on June 4."),
    ("The vegetarian menu costs 18 EUR.", "The fish menu costs 24 EUR."),
    ("Let's take the stairs.", "Actually, let's take notes."),
    ("Use English for the docs.", "Actually, use German for the mails."),
    ("Write the docs in English.", "Actually, write the mails in German."),
    ("Never deploy to production on Fridays.", "Never deploy to staging on Sundays."),
    ("Only Anna may approve production deploys.", "Only Ben may approve database changes."),
    ("The weekly report is due on Monday.", "The monthly report is due on Friday."),
    ("The daily backup runs at 02:00.", "The weekly backup runs at 04:00."),
    ("Our cap for travel is $900.", "Our cap for food is $300."),
    ("Room 12 is for the speakers.", "Room 14 is for the guests."),
    ("Let's put the piano in the living room.", "Actually, let's put the desk in the bedroom."),
    ("In the bedroom we'll use white paint.", "Actually, in the hallway we'll use grey paint."),
    ("On iOS we'll use Swift.", "Actually, on Android we'll use Kotlin."),
    ("For iOS, use Swift.", "For Android, use Kotlin."),
    ("The UK price is £40.", "The US price is $55."),
    ("Version 2.1 ships on May 3.", "Version 2.2 ships on June 9."),
    ("The car is booked from May 3 to May 5.", "The hotel is booked from May 3 to May 7."),
    ("Please call me Bob.", "Actually, call the project Falcon."),
    ("Let's call the cat Luna.", "Actually, let's call the dog Rex."),
    ("Invoice A-100 is paid by Acme.", "Invoice A-101 is paid by Bolt."),
    ("The old office is at 5 Elm Street.", "The new warehouse is at 9 Oak Street."),
    ("Mom's flight lands at 14:20.", "Dad's flight lands at 16:45."),
    ("The left speaker is set to 40%.", "The right speaker is set to 60%."),
    ("Use Postgres.", "Actually, let's use a darker theme."),
    ("Let's use dark mode.", "Actually, let's use light weights at the gym."),
    ("Let's meet on Friday.", "Actually, let's use Postgres."),
    ("The primary key is user_id.", "The foreign key is order_id."),
    ("My work email is a@x.org.", "My private email is b@y.org."),
    ("I take 5 mg of ramipril.", "I take 20 mg of simvastatin."),
    ("The office in Berlin has 20 desks.", "The new office in Paris has 40 desks."),
    ("My favourite team is Arsenal.", "My wife's favourite team is Chelsea."),
    ("Never deploy on Fridays without approval.", "From now on, never deploy on Mondays without approval."),
    ("I'm allergic to Penicillin.", "I'm allergic to Latex."),
    ("Our client in Rome is Ferro.", "Our client in Milan is Bianchi."),
    ("We meet Anna on Monday at 10:00.", "We meet Ben on Tuesday at 11:00."),
    ("The invoice from Acme is $500.", "The invoice from Bolt is $700."),
    ("Server alpha runs Postgres 15.", "Server beta runs MySQL 8."),
    (
        "The production database is Postgres 15 running in eu-north-1.",
        "The staging database is MySQL 8 running in us-west-2.",
    ),
    ("Our primary region is eu-north-1.", "Our backup region is us-west-2."),
    ("Run unit tests with pytest before pushing.", "Run integration tests with make before release."),
    ("The on-call engineer this week is Anna Smith.", "The on-call engineer next week is Ben Jones."),
    ("Let's use Postgres for the reports.", "Actually, let's use MySQL for the shop."),
    ("Let's ship the beta on May 3.", "Actually, let's ship the final version on June 9."),
    ("Let's plant roses at the front.", "Actually, let's plant tulips at the back."),
    ("Let's invite Carla on Saturday.", "Actually, let's invite Dmitri on Sunday."),
    ("We'll use Redis for sessions.", "Actually, we'll use Kafka for events."),
    ("Let's rent a van for the move.", "Actually, let's rent a bike for the weekend."),
    ("The rent is due on the 1st.", "Actually, the electricity bill is due on the 15th."),
    ("My laptop has 16 GB of RAM.", "Actually, my desktop has 64 GB of RAM."),
    ("Let's ship the app in June 2026.", "Actually, let's ship the website in May 2026."),
    ("Use port 5432 for the database.", "Actually, use port 6379 for the cache."),
    ("Dana's train arrives at 9:40.", "Actually, Olek's train arrives at 11:15."),
    ("The spare key is with Marta.", "Actually, the garage key is with Jonas."),
    ("Our teacher is Mr. Brown.", "Sorry, our coach is Mr. Green."),
    ("My dad's phone number is 555-1000.", "My mom's phone number is 555-2000."),
    ("Peter's budget is $900.", "Paula's budget is $400."),
]

HOLDING_MORE = [
    ("The office is 20 hours at 17.50.", "He takes the office, but wants 24 hours, not 20."),
    ("Token lifetimes: access 5 min, refresh 30 days, portal 8 h.", "Security wants 12 h, not 30 days, for mobile."),
    ("The stack is Postgres 15.4, Redis 7.2, 6 pods.", "We decided to drop Redis: the new query takes 12 ms."),
    ("Prices: demolition $45, wiring $120, tiles $110.", "I paid $48 instead of $45 for the demolition."),
    ("Экзамены: химия 8 июня, физика 12 июня, история 17 июня.", "Историю перенесли с 17 на 19 июня."),
    ("Эналаприл 10 мг, амлодипин 5 мг, метформин 500 мг.", "Амлодипин врач снизила до 2,5 мг."),
    ("We are 22 people for the hike.", "We moved the hike from 22 to 25 September."),
    ("The rent is £14 a month.", "He wants to launch on 9 April rather than the 14th."),
]
"""Pairs in which the later statement says nothing about the values of the earlier one."""

MOVED = [
    ("The chemistry test is on 22 September.", "The chemistry test was moved from the 22nd to the 25th of September."),
    ("The chemistry test is on 22 September.", "The chemistry test was moved from 22 to 25 September."),
    ("Rehearsal starts at 3 pm.", "Rehearsal was moved from 3 to 4 pm."),
]
"""Pairs whose later statement names the old and the new value; only one of the two may have the unit."""

BESIDE_IN_RUSSIAN = [
    ("Давай использовать тёмную тему.", "На самом деле, давай возьмём Postgres."),
    ("Возьмём тёмную тему.", "Нет, лучше возьмём Postgres."),
    ("Для пути туда возьмём поезд.", "Нет, для пути обратно возьмём автобус."),
    ("Возьмём поезд на дорогу туда.", "На самом деле, возьмём автобус на дорогу обратно."),
    ("Красим кухню в синий, решили.", "Решили, ванную красим в зелёный."),
    ("Решили покрасить кухню в синий.", "На самом деле, решили покрасить ванную в зелёный."),
    ("Для продакшена используем Postgres.", "На самом деле, для стейджинга используем SQLite."),
    ("Сервер стейджинга работает на порту 8080.", "Сервер продакшена работает на порту 9090."),
    ("Обед в 12:30.", "Ужин в 19:00."),
    ("Мой обед в 12:30.", "Мой ужин в 19:00."),
    ("Давай закажем пиццу на обед.", "На самом деле, давай закажем суши на ужин."),
    ("Для фронтенда возьмём React.", "Нет, для бэкенда возьмём Django."),
    ("Срок по фронтенду — 3 марта.", "Срок по бэкенду — 17 марта."),
    ("Первый этаж сдан Акме.", "Второй этаж сдан Болту."),
    ("Для первого этажа решили взять дуб.", "Для второго этажа решили взять плитку."),
    ("Мой день рождения 3 мая.", "День рождения моей жены 7 июня."),
    ("Мой номер телефона 555-1234.", "Номер телефона моей жены 555-9876."),
    ("Мой рейс вылетает в 10:30.", "Рейс моей жены вылетает в 12:45."),
    ("Моя зарплата 50 000 рублей.", "Зарплата мужа 62 000 рублей."),
    ("Бюджет Анны 500 долларов.", "Бюджет Бориса 700 долларов."),
    ("Анна приезжает 3 мая.", "Борис приезжает 5 мая."),
    ("Бюджет маркетинга 10 000 рублей.", "Бюджет продаж 12 000 рублей."),
    ("Срок для маркетинга — 3 мая.", "На самом деле, срок для продаж — 10 мая."),
    ("Первый платёж нужен 3 мая.", "Второй платёж нужен 3 июня."),
    ("Шаг 1 занимает 10 минут.", "Шаг 2 занимает 25 минут."),
    ("Первый этап заканчивается 3 мая.", "Второй этап заканчивается 9 июля."),
    ("Взрослый билет стоит 400 рублей.", "Детский билет стоит 250 рублей."),
    ("Аренда 12 000 рублей.", "Залог 24 000 рублей."),
    ("Лимит на скачивание 50 ГБ.", "Лимит на загрузку 20 ГБ."),
    ("Заезд в 15:00.", "Выезд в 11:00."),
    ("Наш рейс туда LH400.", "Наш рейс обратно LH401."),
    ("Утренняя сессия начинается в 9:00.", "Дневная сессия начинается в 14:00."),
    ("У сервера альфа 16 ГБ памяти.", "У сервера бета 32 ГБ памяти."),
    ("Офис в Москве открывается в 8:00.", "Офис в Казани открывается в 9:00."),
    ("Давай забронируем отель на понедельник.", "На самом деле, давай забронируем машину на вторник."),
    ("Возьмём синий логотип.", "Нет, лучше возьмём шрифт покрупнее."),
    ("Возьмём табы.", "Нет, лучше возьмём Kubernetes."),
    ("Возьмём отступ в два пробела.", "На самом деле, возьмём MySQL."),
    ("Возьмём месячный тариф.", "Передумал, давай лучше возьмём Redis."),
    ("Поставим таймаут 30 секунд.", "Поставим число попыток 5."),
    ("Таймаут чтения 30 секунд.", "На самом деле, таймаут записи 60 секунд."),
    ("Ключ для Stripe лежит в /etc/stripe.key.", "Ключ для Twilio лежит в /etc/twilio.key."),
    ("Мой врач — доктор Адамс.", "Мой стоматолог — доктор Бейкер."),
    ("Моего сына зовут Том.", "Мою дочь зовут Мия."),
    ("Моя сестра живёт в Осло.", "Мой брат живёт в Бергене."),
    ("У меня аллергия на арахис.", "У сына аллергия на креветки."),
    ("Мы решили покрасить офис.", "Мы решили заменить ковёр."),
    ("Мы решили нанять Анну.", "Мы решили нанять Бориса."),
    ("Свадьба 5 июня.", "Репетиция 4 июня."),
    ("Наша свадьба 5 июня.", "Наша репетиция 4 июня."),
    ("Вегетарианское меню стоит 18 евро.", "Рыбное меню стоит 24 евро."),
    ("Документацию пиши на английском.", "Нет, письма пиши на немецком."),
    ("Никогда не деплой в продакшен по пятницам.", "Никогда не деплой на стейджинг по воскресеньям."),
    ("Недельный отчёт нужен в понедельник.", "Месячный отчёт нужен в пятницу."),
    ("Ежедневный бэкап идёт в 02:00, это наш лимит.", "Еженедельный бэкап идёт в 04:00, это наш лимит."),
    ("Лимит на поездки 900 долларов.", "Лимит на еду 300 долларов."),
    ("Комната 12 для докладчиков.", "Комната 14 для гостей."),
    ("В спальне используем белую краску.", "На самом деле, в коридоре используем серую краску."),
    ("На iOS используем Swift.", "На самом деле, на Android используем Kotlin."),
    ("Версия 2.1 выходит 3 мая.", "Версия 2.2 выходит 9 июня."),
    ("Кота назовём Луна, решили.", "На самом деле, решили собаку назвать Рекс."),
    ("Рейс мамы прилетает в 14:20.", "Рейс папы прилетает в 16:45."),
    ("Моя рабочая почта a@x.org.", "Моя личная почта b@y.org."),
    ("Возьмём дуб для кухни.", "Нет, возьмём сосну для спальни."),
    ("Встреча с дизайнерами в понедельник в 10:00.", "Встреча с юристами во вторник в 11:00."),
    ("Моя машина Лада.", "Машина жены Киа."),
    ("Минимальный возраст 18 лет.", "Максимальный возраст 65 лет."),
    ("Цена для взрослых 400 рублей.", "Цена для детей 250 рублей."),
    ("Срок сдачи проекта — 3 марта.", "Нет, срок оплаты счёта — 10 марта."),
    ("Давайте встретимся в пятницу.", "На самом деле, давайте возьмём Postgres."),
]

AGAIN = [
    ("I ran 5 miles in 40 minutes last week.", "I ran 3 miles in 25 minutes today."),
    ("I paid $40 for the lunch on 3 May.", "I paid $30 for the lunch on 4 May."),
    ("My blood pressure was 130/85 on 3 May 2026.", "My blood pressure was 120/80 on 9 May 2026."),
    ("We sold 120 tickets for $2,400 on Friday.", "We sold 90 tickets for $1,800 on Saturday."),
    ("My weight is 82 kg, measured on 3 May.", "My weight is 81 kg, measured on 10 May."),
    ("I spent $45 on fuel.", "I spent $50 on fuel."),
    ("I transferred $500 to account 12345.", "I transferred $700 to account 12345."),
    ("I have an appointment on May 3 at 10:00.", "I have an appointment on May 9 at 11:00."),
    ("Я пробежал 5 км за 30 минут.", "Я пробежал 7 км за 40 минут."),
]
"""Pairs about something that happens again, with other values."""

CHANGED = [
    ("We'll use Redis for sessions.", "Actually, we'll use Memcached for sessions."),
    ("The rent is due on May 1.", "Sorry, the rent is due on May 3."),
    ("Use port 5432 for the database.", "Actually, use port 5433 for the database."),
    ("Let's ship the app in June 2026.", "Actually, let's ship the app in July 2026."),
    ("Our standup is at 9:30.", "Our standup is at 10:00 from now on."),
    (
        "Note: the working branch is fix/cache-12 and stays unpushed.",
        "Note: the working branch is fix/login-7 and stays unpushed.",
    ),
    ("Fact: Region for the database: ap-south-2.", "Fact: Region for the database: us-east-1."),
    ("Goal: base commit for the current work is 7f8fbee.", "Goal: base commit for the current work is 0bd5482."),
    ("Use Postgres.", "Actually, MySQL as our main database."),
    ("Use Postgres.", "Actually, let's use MySQL as our main database."),
    ("Use Postgres", "Actually, MySQL as our primary database"),
    ("Let's use Postgres.", "Scratch that, MySQL."),
    ("Let's use Postgres.", "scratch that, let's use MySQL"),
    ("Let's use Postgres.", "On second thought, MySQL."),
    ("Let's use Postgres.", "On second thought MySQL"),
    ("Let's use Postgres.", "On second thought, let's use MySQL."),
    ("Let's use Postgres.", "no, MySQL"),
    ("Let's use React.", "Actually, Vue as our frontend framework."),
    ("Let's use React.", "Hmm, no, Vue."),
    ("Let's use Kafka.", "Actually, RabbitMQ for our message queue."),
    ("Let's use AWS.", "Wait, let's go with GCP."),
    ("Let's use AWS.", "Make that GCP."),
    ("Let's use dark mode.", "Actually, let's use light mode."),
    ("Let's use dark mode.", "On second thought, light mode."),
    ("Let's use a dark theme.", "Scratch that, a light theme."),
    ("The deadline is March 3.", "The deadline is now March 10."),
    ("The deadline is March 3.", "The deadline moved from March 3 to March 10."),
    ("The deadline is March 3.", "The deadline has changed from March 3 to March 10."),
    ("The budget is $500.", "The budget is now $600."),
    ("The budget is $500.", "The budget was raised to $600."),
    ("The budget is $500.", "The budget has been increased from $500 to $600."),
    ("We use Jenkins for builds.", "We no longer use Jenkins, it's GitLab now."),
    ("Our database is Postgres.", "Our database is now MySQL."),
    ("Our project lead is Anna Smith.", "Our project lead is now Ben Jones."),
    ("My phone number is 555-1234.", "My phone number is now 555-9876."),
    ("My phone number is 555-1234.", "My new phone number is 555-9876."),
    ("The meeting is at 10:30.", "The meeting is at 11:45 instead."),
    ("I live in Berlin.", "I moved from Berlin to Munich, so I live in Munich now."),
    ("Please call me Bob.", "Actually, call me Robert."),
    ("Let's order pizza for lunch.", "Actually, let's order sushi for lunch."),
    ("Use tabs.", "Actually, use spaces."),
    ("The staging server runs on port 8080.", "The staging server runs on port 9090 now."),
    ("My wife's birthday is June 7.", "Sorry, my wife's birthday is June 8."),
    ("Report all times in UTC.", "From now on, report all times in CET."),
    ("Always answer in English.", "From now on, always answer in German."),
    ("Let's set the read timeout to 30 seconds.", "Actually, let's set the read timeout to 60 seconds."),
    ("Let's use Redis for sessions.", "Let's use Memcached for sessions instead."),
    ("Let's use Redis for sessions.", "Memcached instead of Redis for sessions."),
    ("Only Anna may approve production deploys.", "Only Ben may approve production deploys now."),
    ("The codename is FALCON-12.", "The codename is now EAGLE-77."),
    ("The codename is FALCON-12.", "The codename is EAGLE-77."),
]

CHANGED_IN_RUSSIAN = [
    ("Используем Postgres.", "Нет, MySQL как основная база."),
    ("Используем Postgres.", "На самом деле, MySQL в качестве основной базы."),
    ("Используем Postgres.", "Передумал, MySQL."),
    ("Используем Postgres.", "Нет, MySQL."),
    ("Используем Postgres.", "Хотя нет, MySQL."),
    ("Используем Postgres.", "Забудь, давай MySQL."),
    ("Используем Postgres.", "Отмена, берём MySQL."),
    ("Используем Postgres.", "Лучше MySQL."),
    ("Возьмём React.", "Нет, лучше Vue."),
    ("Возьмём тёмную тему.", "Нет, лучше светлую тему."),
    ("Возьмём тёмную тему.", "На самом деле, возьмём светлую тему."),
    ("Срок — 3 марта.", "Срок теперь 10 марта."),
    ("Срок сдачи — 3 марта.", "Срок сдачи перенесли с 3 марта на 10 марта."),
    ("Бюджет проекта 500 долларов.", "Бюджет проекта теперь 600 долларов."),
    ("Бюджет проекта 500 долларов.", "Бюджет проекта увеличили с 500 до 600 долларов."),
    ("Бюджет проекта 500 долларов.", "Бюджет проекта увеличили до 600 долларов."),
    ("Для сборки используем Jenkins.", "Jenkins больше не используем, теперь GitLab."),
    ("Наша база Postgres.", "Наша база теперь MySQL."),
    ("Мой номер телефона 555-1234.", "Мой номер телефона теперь 555-9876."),
    ("Мой номер телефона 555-1234.", "Мой новый номер телефона 555-9876."),
    ("Встреча в 10:30.", "Встреча перенесена на 11:45."),
    ("Встреча в понедельник в 10:00.", "Встречу перенесли на вторник в 11:00."),
    ("Зови меня Боб.", "Нет, зови меня Роберт."),
    ("Возьмём дуб для кухни.", "Нет, возьмём сосну для кухни."),
    ("Для сессий возьмём Redis.", "Для сессий возьмём Memcached вместо Redis."),
    ("Сервер стейджинга работает на порту 8080.", "Сервер стейджинга теперь работает на порту 9090."),
    ("День рождения моей жены 7 июня.", "Поправка: день рождения моей жены 8 июня."),
    ("Таймаут чтения 30 секунд.", "Нет, таймаут чтения 60 секунд."),
    ("Я живу в Москве.", "Я переехал из Москвы в Казань."),
]

IN_THE_STATE = [
    ("Let's use dark mode.", "Actually, let's use Postgres."),
    ("Let's book the 9:15 train for the way out.", "Let's book the 18:40 train for the way back."),
    ("My phone number is 555-1234.", "My wife's phone number is 555-9876."),
    ("Let's set the read timeout to 30 seconds.", "Actually, let's set the write timeout to 60 seconds."),
    ("Возьмём поезд на дорогу туда.", "На самом деле, возьмём автобус на дорогу обратно."),
    ("Таймаут чтения 30 секунд.", "На самом деле, таймаут записи 60 секунд."),
]


@each(("first", "then"), BESIDE + BESIDE_IN_RUSSIAN + AGAIN)
def test_what_is_said_of_another_thing_leaves_the_first(first: str, then: str) -> None:
    assert statuses(first, "A: Good.", then).get(first, "no anchor") in {"active", "no anchor"}


@pytest.mark.parametrize(("first", "then"), HOLDING_MORE)
def test_what_holds_other_values_stays(first: str, then: str) -> None:
    assert not replacement.replaces(then, first, new_type="correction")
    assert not replacement.replaces(then, first, new_type="critical_fact")


@pytest.mark.parametrize(("first", "then"), HOLDING_MORE[:6])
def test_control_else_its_other_values_would_go_with_it(first: str, then: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "_lost_values", lambda *_: set())
    assert replacement.replaces(then, first, new_type="correction")


@pytest.mark.case("24")
@pytest.mark.parametrize(("first", "then"), MOVED)
def test_what_is_moved_from_an_earlier_value_takes_its_place(first: str, then: str) -> None:
    assert replacement.replaces(then, first, new_type="critical_fact")
    assert replacement.replaces(then, first, new_type="correction")


@pytest.mark.case("24")
@each(("first", "then"), CHANGED + CHANGED_IN_RUSSIAN)
def test_what_is_said_of_the_same_thing_takes_its_place(first: str, then: str) -> None:
    told = statuses(first, "A: Good.", then)

    assert told[first] == f"superseded by {then}"
    assert told[then] == "active"


@each("together", [True, False])
@each(("first", "then"), IN_THE_STATE)
def test_the_state_keeps_both(first: str, then: str, *, together: bool) -> None:
    served, superseded = remembered(first, then, together=together)

    assert first.rstrip(".") in served
    assert then.rstrip(".") in served
    assert not superseded


@pytest.mark.control("24")
@pytest.mark.parametrize(("first", "then"), [IN_THE_STATE[number] for number in (1, 2, 3, 4, 5)])
def test_control_without_telling_things_apart_it_would_go(
    monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    for module in (antecedents, replacement):
        monkeypatch.setattr(module, "is_about_another_thing", lambda *_, **__: False)

    assert statuses(first, "A: Good.", then)[first].startswith("superseded")


def test_control_what_happens_again_would_be_taken_for_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "_states_change", lambda *_: True)

    assert any(statuses(first, "A: Good.", then)[first].startswith("superseded") for first, then in AGAIN)
