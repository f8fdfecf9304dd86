"""Texts of our own writing with their true counts, so that the published error can be checked without a vocabulary."""

# ruff: noqa: E501 - the samples are data

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SAMPLES: Final[Mapping[str, tuple[str, int]]] = {
    "English chat": (
        "Morning! Did the plumber ever call back? I waited until half past nine and then had to leave for work.\nNo worries, I'll take the dog to the vet on Saturday and pick up the cake on the way home.\nCan we push the call to 3pm? My train is stuck outside Reading and nobody knows why.\nI think we should book the smaller cabin, it's cheaper and the kids won't mind sharing a room.",
        95,
    ),
    "English prose": (
        "The lighthouse had been empty since the spring, and grass grew between the stones of its narrow yard. Nobody in the village could say who paid for the lamp, yet every evening it was lit, and every morning a thin line of smoke rose from the chimney. Martha, who delivered the post, had stopped asking.\nA budget is a promise about the future made by people who will not all be there to keep it. That is why the committee asked for two versions: one that assumed the bridge would be finished, and one that did not.",
        110,
    ),
    "markdown": (
        "## Moving the archive\n\n1. Stop the importer: `systemctl stop importer`.\n2. Copy the files, then **check the sums**:\n\n   ```sh\n   rsync -a /srv/archive/ backup:/srv/archive/\n   sha256sum -c sums.txt\n   ```\n3. Change `archive.path` in [the settings](settings.md#archive).\n\n> Nothing is deleted before step 3 is done.\n\n| step | who | takes |\n|------|-----|-------|\n| copy | Ines | 2 h |\n| check | Ravi | 20 min |\n",
        137,
    ),
    "code: python": (
        "class Shelf:\n    def __init__(self, books: Iterable[Book] = ()) -> None:\n        self._books = {book.isbn: book for book in books}\n\n    def lend(self, isbn: str, reader: Reader) -> Loan:\n        book = self._books.get(isbn)\n        if book is None or book.lent_to is not None:\n            raise NotAvailableError(isbn)\n        book.lent_to = reader\n        return Loan(book=book, reader=reader, due=date.today() + timedelta(days=28))\n",
        131,
    ),
    "code: javascript": (
        "export async function loadInvoices(customerId, { page = 1, signal } = {}) {\n  const response = await fetch(`/api/customers/${customerId}/invoices?page=${page}`, { signal });\n  if (!response.ok) {\n    throw new Error(`Loading failed: ${response.status}`);\n  }\n  const { items, total } = await response.json();\n  return items.map((item) => ({ ...item, dueDate: new Date(item.dueDate), isLate: item.paid === false }));\n}\n",
        119,
    ),
    "code: sql": (
        "SELECT c.name, count(*) AS orders, sum(o.total_cents) / 100.0 AS total\nFROM customers AS c\nJOIN orders AS o ON o.customer_id = c.id\nWHERE o.created_at >= now() - interval '30 days' AND o.status <> 'cancelled'\nGROUP BY c.name\nHAVING count(*) > 3\nORDER BY total DESC\nLIMIT 20;\n",
        98,
    ),
    "JSON": (
        '{"booking_id":"HT-20931","guest":{"first_name":"Amina","last_name":"Okafor","email":"amina@example.org"},"nights":3,"rooms":[{"type":"double","price":{"amount":118.0,"currency":"EUR"},"breakfast":true}],"paid":false}\n{\n  "status": "delayed",\n  "flight": "KL1023",\n  "departure": {"airport": "AMS", "gate": "D24", "time": "2026-03-14T08:55:00Z"},\n  "seats": ["12A", "12B"],\n  "reason": null\n}',
        162,
    ),
    "Russian": (
        "Привет! Слушай, я вчера так и не дозвонился до банка, попробую ещё раз после обеда.\nБилеты лучше взять заранее, потом они подорожают почти вдвое. Поезд уходит в семь утра, так что встретимся на вокзале за полчаса.\nМы перенесли встречу на четверг, потому что половина команды заболела. Отчёт пришлю завтра вечером, там осталось проверить две таблицы и вывод.\nМама просила купить хлеб, молоко и что-нибудь к чаю.",
        117,
    ),
    "Chinese": (
        "你好，昨天的会议记录我已经发到群里了，麻烦大家看一下有没有遗漏。\n周末我们打算去爬山，早上七点在地铁站门口集合，记得带水和雨伞。\n这个接口返回的数据格式不对，前端页面显示不出来，能不能帮我查一下日志？\n妈妈的生日快到了，我想给她买一部新手机，预算大概三千块钱，你有什么推荐吗？",
        91,
    ),
    "Japanese": (
        "おはようございます。昨日お願いした資料ですが、今日の午後までに送っていただけますか。\n週末は雨が降るらしいので、ハイキングは来週に延期しましょう。\n新しいパソコンを買おうと思っていますが、どれがいいか分かりません。予算は十五万円くらいです。\nこのエラーはサーバーを再起動すると直りますが、原因はまだ調査中です。",
        78,
    ),
    "Korean": (
        "안녕하세요, 어제 보내 주신 파일이 열리지 않아서 다시 한번 보내 주실 수 있을까요?\n주말에 비가 온다고 하니까 등산은 다음 주로 미루는 게 좋겠어요.\n서버를 다시 시작하면 오류가 사라지지만 원인은 아직 확인하고 있습니다.",
        64,
    ),
    "Arabic": (
        "صباح الخير، هل وصلتك الرسالة التي أرسلتها أمس؟ أحتاج إلى ردك قبل نهاية اليوم.\nسنذهب إلى البحر يوم الجمعة إذا كان الطقس جميلا، ويمكنك أن تأتي معنا مع الأولاد.\nالطلب تأخر بسبب مشكلة في الدفع، وسوف نعيد المبلغ إلى حسابك خلال ثلاثة أيام.\nأبحث عن شقة صغيرة قريبة من الجامعة، والإيجار لا يزيد عن ألفي ريال في الشهر.",
        99,
    ),
    "German": (
        "Guten Morgen, könnten Sie mir bitte sagen, wann die Lieferung ankommt? Wir müssen den Termin mit dem Handwerker abstimmen.\nIch habe gestern die Rechnung überwiesen, aber im Kundenkonto steht sie immer noch als offen.\nAm Wochenende fahren wir zu meinen Großeltern, deshalb schaffe ich die Präsentation erst am Dienstag.",
        70,
    ),
    "Spanish": (
        "Hola, ¿sabes si mañana abre la farmacia de la esquina? Necesito recoger las medicinas de mi abuela.\nEl cliente pidió cambiar el color de los botones y añadir una página con las preguntas más frecuentes.",
        46,
    ),
    "Polish": (
        "Cześć, czy możesz odebrać dzieci ze szkoły o czwartej? Mam spotkanie, które na pewno się przedłuży.\nZamówienie zostało wysłane wczoraj wieczorem, więc powinno dotrzeć najpóźniej w piątek.",
        56,
    ),
    "Finnish": (
        "Hei, voisitko lähettää minulle uuden salasanan? Vanha ei enää toimi, vaikka kokeilin sitä monta kertaa.\nLähdemme mökille perjantaina töiden jälkeen ja palaamme vasta maanantaina.",
        55,
    ),
    "emoji-rich chat": (
        "Happy birthday!! 🎂🎉🎉 hope you have the best day ❤️\nomg I can't 😂😂😂 he really said that?? 🙈\nLanded safely ✈️ it's so hot here ☀️🥵 see you on Sunday 😘👋\nспасибо большое 🙏 всё получилось 🔥👍\nDinner at ours? 🍝🍷 bring the kids 👨\u200d👩\u200d👧 and the dog 🐶",
        83,
    ),
    "mixed": (
        "Der Build bricht ab: `TypeError: Cannot read properties of undefined (reading 'id')` in src/cart/total.ts:48, passiert aber nur mit leerem Warenkorb.\n请帮我看看这个报错：`KeyError: 'user_id'`，代码在 services/orders.py 第 112 行，昨天还是好的。\nЗапусти `docker compose up -d` и открой http://localhost:8080/admin, логин test@example.com.\nThe ticket says 「請求書の金額が違います」, invoice no. 2026-0193, ¥48,200 instead of ¥42,800.",
        155,
    ),
}
"""kind: (text, tokens by the Gemma 3 vocabulary)"""
