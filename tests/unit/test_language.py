"""Which language, and when to keep silent."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.gating.gate import judge
from app.domain.words.language import detect, differs, shares
from tests.unit.talk import answer, fact, proposal, request, talk

TEXTS = {
    "en": "We decided to use the new database because it is what the team knows, and the budget is fixed.",
    "ru": "Мы решили взять новую базу данных, потому что команда её уже знает, а бюджет не изменится.",
    "uk": "Ми вирішили взяти нову базу даних, тому що команда її вже знає, і бюджет не зміниться.",
    "de": "Wir haben uns für die neue Datenbank entschieden, weil das Team sie kennt und das Budget nicht steigt.",
    "fr": "Nous avons choisi la nouvelle base de données parce que l'équipe la connaît et que le budget est fixe.",
    "es": "Hemos elegido la nueva base de datos porque el equipo ya la conoce y el presupuesto no puede subir.",
    "it": "Abbiamo scelto il nuovo database perché la squadra lo conosce già e il budget non può aumentare.",
    "pt": "Escolhemos o novo banco de dados porque a equipe já o conhece e o orçamento não pode aumentar, você sabe.",
    "nl": "We hebben voor de nieuwe database gekozen omdat het team die al kent en het budget niet stijgt.",
    "pl": "Wybraliśmy nową bazę danych, ponieważ zespół już ją zna, a budżet nie może być większy niż jest.",
    "zh": "我们决定使用新的数据库，因为团队已经很熟悉它，而且预算不会增加。",
    "ja": "チームがすでに知っているので、新しいデータベースを使うことにしました。予算は変わりません。",
    "ko": "팀이 이미 알고 있기 때문에 새 데이터베이스를 사용하기로 결정했습니다. 예산은 그대로입니다.",
    "ar": "قررنا استخدام قاعدة البيانات الجديدة لأن الفريق يعرفها بالفعل ولن تزيد الميزانية.",
    "el": "Αποφασίσαμε να χρησιμοποιήσουμε τη νέα βάση δεδομένων γιατί η ομάδα την ξέρει.",
    "he": "החלטנו להשתמש במסד הנתונים החדש כי הצוות כבר מכיר אותו.",
    "hi": "हमने नया डेटाबेस उपयोग करने का फैसला किया क्योंकि टीम इसे जानती है।",
    "th": "เราตัดสินใจใช้ฐานข้อมูลใหม่เพราะทีมรู้จักอยู่แล้ว",
}


@pytest.mark.parametrize("language", TEXTS)
def test_detects(language: str) -> None:
    assert detect(TEXTS[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "Anna Smith, Paul Jones, Maria Garcia, John Brown",
        "Иван Петров, Мария Сидорова, Алексей Иванов",
        "def f(x):\n    return x ** 2\nprint(f(3))",
        '{"origin": "JFK", "destination": "DEN", "at": "06:00", "price": 121}',
        "2024-05-20 10:30 1250.50 4421486",
        "src/app/main.py --port 8000 https://example.com/a/b",
        f"{TEXTS['en']} {TEXTS['ru']}",
    ],
)
def test_silent_when_in_doubt(text: str) -> None:
    assert detect(text) is None


@pytest.mark.case("28")
@pytest.mark.parametrize("candidate", TEXTS)
@pytest.mark.parametrize("span", ["en", "ru", "zh", "de"])
def test_differs_only_between_languages(candidate: str, span: str) -> None:
    assert differs(TEXTS[candidate], TEXTS[span] * 3) is (candidate != span)


def test_quotes_and_code_do_not_make_a_foreign_candidate() -> None:
    russian = TEXTS["ru"] + " Функция `create_order()` в app/orders.py, ошибка: PostgreSQL connection refused."
    assert not differs(russian, TEXTS["ru"] * 2)
    english = TEXTS["en"] + " The customer, Марина Иванова, calls it «Волга»."
    assert not differs(english, TEXTS["en"] * 2)


def test_a_language_with_a_substantial_share_of_the_span_is_at_home() -> None:
    mixed = "\n".join([TEXTS["ru"]] * 6 + [TEXTS["en"]] * 3)
    assert detect(mixed) == "ru"
    assert shares(mixed)["en"] >= 0.25
    assert not differs(TEXTS["en"], mixed)
    mostly = "\n".join([TEXTS["ru"]] * 20 + [TEXTS["en"]])
    assert differs(TEXTS["en"], mostly)


CODE = """def create_order(user, total):
    order = Order(user=user, total=total)
    for item in basket:
        session.add(item)
    return order

const app = express();
app.get("/orders", (request, response) => {
  response.json(orders);
});
SELECT * FROM orders WHERE total > 100;
"""


@pytest.mark.parametrize("language", ["en", "ru", "zh", "ja", "ar"])
@pytest.mark.parametrize("code", [CODE * 3, f"```python\n{CODE * 10}```"])
def test_code_beside_it_hides_no_language(language: str, code: str) -> None:
    span = f"{TEXTS[language]}\n{code}\n{TEXTS[language]}"
    assert detect(span) == language
    for other in ("en", "ru", "zh", "ja", "ar"):
        assert differs(TEXTS[other], span) is (other != language)


@pytest.mark.parametrize(
    ("language", "items"),
    [
        ("en", "Budget: 900 francs\nTrip to Porto with the sister in June\nUses PostgreSQL 16, FastAPI and Kubernetes"),
        ("ru", "Бюджет 900 евро\nПоездка в Порту с сестрой в июне\nPostgreSQL 16, FastAPI, Kubernetes в проде"),
        ("zh", "预算八千元\n六月去北京旅行\n使用 PostgreSQL 16 和 FastAPI，部署在 Kubernetes 上"),
        ("ja", "予算8000円\n六月に京都旅行\n会議：11月20日、東京本社\nPostgreSQL 16 と FastAPI を使用"),
        ("ar", "الميزانية 900 يورو\nرحلة إلى لشبونة مع الأخت\nيستخدم PostgreSQL 16 و FastAPI"),
    ],
)
def test_terse_items_are_told_by_what_they_are_written_in(language: str, items: str) -> None:
    assert not differs(items, TEXTS[language] * 3), "honest items with terms of other scripts are at home"
    for other in ("en", "ru", "zh", "ja", "ar"):
        if other != language and {other, language} != {"zh", "ja"}:
            assert differs(items, TEXTS[other] * 3), other


def test_a_candidate_that_is_half_translated_differs() -> None:
    russian, english = TEXTS["ru"], TEXTS["en"]
    assert detect(f"{russian}\n{english}") is None
    assert differs(f"{russian}\n{english}\n{english}", russian * 3)
    assert not differs(f"{russian}\n{russian}\n{english}", russian * 3)


def test_japanese_nouns_in_common_signs_are_not_taken_for_chinese() -> None:
    assert detect("会議：東京本社、予算確認、担当：田中") is None
    assert not differs("会議：東京本社、予算確認、担当：田中", TEXTS["ja"] * 2)
    assert differs(TEXTS["zh"], TEXTS["ja"] * 2)


def test_a_foreign_name_does_not_turn_arabic_into_persian() -> None:
    arabic = TEXTS["ar"] * 4 + " اسم المدير پيتر چان."
    assert detect(arabic) == "ar"
    assert detect("ما تصمیم گرفتیم از پایگاه داده جدید استفاده کنیم چون گروه آن را می‌شناسد و چیزی گران نمی‌شود.") == "fa"


@pytest.mark.parametrize(("speaks", "pastes"), [("ru", "en"), ("zh", "en"), ("en", "ru"), ("ja", "zh"), ("ar", "en")])
def test_a_pasted_text_is_not_what_a_conversation_speaks(speaks: str, pastes: str) -> None:
    """Honest answers pass; one in the language of the pasted text, which most of the words are in, is refused."""
    messages = talk(f"{TEXTS[speaks]}\n\n{TEXTS[pastes] * 25}", TEXTS[speaks])
    written = {language: answer(TEXTS[language], [fact(TEXTS[language], 1)]) for language in (speaks, pastes)}
    reasons = {language: judge(proposal(text), request(messages)).reason for language, text in written.items()}
    assert reasons == {speaks: None, pastes: "wrong_language"}


def test_where_everything_was_pasted_its_language_counts() -> None:
    messages = talk(TEXTS["en"] * 25)
    assert judge(proposal(answer(TEXTS["ru"], [fact(TEXTS["ru"], 1)])), request(messages)).reason == "wrong_language"


def test_unknown_never_differs() -> None:
    assert not differs("ok", TEXTS["ru"])
    assert not differs(TEXTS["en"], "x = 1")


@given(st.text(), st.text())
def test_never_raises_and_never_differs_from_itself(text: str, other: str) -> None:
    assert not differs(text, text)
    differs(text, other)


@pytest.mark.parametrize("unit", ["a", "`", "a_", "(", "a(", "й", "https://", "@", "a@", "a/", "```", "A: ", "Ab Cd: "])
def test_linear_time_on_hostile_text(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    started = time.perf_counter()
    differs(text, text + "x")
    assert time.perf_counter() - started < 4
