"""Bad input for the judge: a damaged or foreign model is no judge and is reported; no text makes a turn fail."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest

from nanoclaw_memory.providers import judge, scorer
from nanoclaw_memory.providers.judge import HEADS, Judge

LANGUAGES = (
    "When is my next appointment?|Wann ist mein nächster Termin?|Quand est mon prochain rendez-vous ?|"
    "¿Cuándo es mi próxima cita?|Quando è il mio prossimo appuntamento?|Quando é a minha próxima consulta?|"
    "Wanneer is mijn volgende afspraak?|Kiedy mam następną wizytę?|Kdy mám další schůzku?|"
    "Kedy mám ďalšie stretnutie?|Mikor van a következő időpontom?|Când este următoarea mea programare?|"
    "Кога е следващият ми час?|Када ми је следећи термин?|Kada mi je sljedeći termin?|"
    "Kdaj imam naslednji termin?|Когда моя следующая встреча?|Коли моя наступна зустріч?|"
    "Калі мая наступная сустрэча?|Πότε είναι το επόμενο ραντεβού μου;|Bir sonraki randevum ne zaman?|"
    "Növbəti görüşüm nə vaxtdır?|Менің келесі кездесуім қашан?|متى موعدي القادم؟|قرار بعدی من کی است؟|"
    "מתי הפגישה הבאה שלי?|मेरी अगली मुलाक़ात कब है?|আমার পরবর্তী সাক্ষাৎ কখন?|என் அடுத்த சந்திப்பு எப்போது?|"
    "నా తదుపరి అపాయింట్‌మెంట్ ఎప్పుడు?|การนัดครั้งต่อไปของฉันเมื่อไหร่|Khi nào là cuộc hẹn tiếp theo của tôi?|"
    "Kapan janji temu saya berikutnya?|Kailan ang susunod kong tipanan?|我的下一个预约是什么时候？|"
    "次の予約はいつですか？|다음 약속은 언제예요?|Miadi yangu ijayo ni lini?|När är mitt nästa möte?|"
    "Milloin seuraava tapaamiseni on?|Millal on mu järgmine kohtumine?|Kad mano kitas susitikimas?|"
    "Hvenær er næsti tíminn minn?|ჩემი შემდეგი შეხვედრა როდისაა?|Ե՞րբ է իմ հաջորդ հանդիպումը"
).split("|")
TEXTS = {
    "empty": "",
    "blank": " \n\t\n",
    "NUL": "\x00" * 5_000,
    "binary": bytes(range(256)).decode("latin-1") * 40,
    "lone surrogate": "no \ud800 wrong \udfff",
    "one word of 1 MB": "x" * 1_000_000,
    "1 MB of lines": "No, the other one.\n" * 55_000,
    "1 MB of one line": "ünd dann dås ändere " * 50_000,
    "marks": "[CLS] [SEP] [unused0] [unused1] [PAD]",
    "emoji": "👩🏽‍💻🏳️‍🌈" * 300,
}


@pytest.fixture(scope="module")
def asked() -> Judge:
    return Judge()


@pytest.fixture
def resident(open_memory):
    memory = open_memory(embeddings__provider="none")
    memory.init()
    memory.group.resources.resident = True
    return memory


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_gets_a_probability_from_every_head(asked, text):
    for head in HEADS:
        if HEADS[head] == 1:
            assert 0 <= asked.probability(head, text, text) <= 1
    assert asked.line_type(text, text)[1] > 0
    assert asked.reach(text, text)
    lines = text.split("\n")
    own = asked.own_lines(lines)
    assert len(own) == len(lines)
    assert all(0 <= one <= 1 for one in own)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_makes_a_turn_fail(resident, text):
    turn = resident.before_turn(text)
    assert not [one for one in turn.skipped if "failed" in one.reason]
    kept = resident.after_turn(text, "Done.")
    assert not [one for one in kept.notes if "failed" in one.reason]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_makes_a_cold_turn_fail(open_memory, text):
    memory = open_memory(embeddings__provider="none")
    memory.init()
    assert not [one for one in memory.before_turn(text).skipped if "failed" in one.reason]
    assert len(list(scorer.features(text))) < 20_000


@pytest.mark.parametrize("content", [None, b"", b"\xff" * 1_000], ids=["missing", "empty", "cut off"])
def test_a_damaged_scorer_is_neutral_and_reported(memory, monkeypatch, tmp_path, content):
    monkeypatch.setattr(scorer, "FILE", tmp_path / "scorer.bin")
    if content is not None:
        scorer.FILE.write_bytes(content)
    scorer._weights.cache_clear()
    try:
        assert scorer.probability("needs", "Who is Anna?") == 0.5
        assert not [one for one in memory.before_turn("Who is Anna?").skipped if "failed" in one.reason]
        assert [one.level for one in memory.doctor() if "scorer.bin" in one.message] == ["warning"]
    finally:
        scorer._weights.cache_clear()


def test_messages_in_forty_languages_are_judged_and_answered(resident, asked):
    assert len(LANGUAGES) >= 40
    for text in LANGUAGES:
        assert 0 <= asked.probability("needs", text) <= 1
        assert not [one for one in resident.before_turn(text).skipped if "failed" in one.reason]


def test_an_empty_message_needs_nothing_and_corrects_nothing(asked):
    assert asked.probability("needs", "") == asked.probability("correction", " \n", "Done.") == 0


def test_what_is_remembered_of_a_huge_text_is_small(asked):
    asked.probability("needs", "long " * 200_000)
    assert max(len(key) for key in asked._known) <= judge.MAX_TOKENS


# ---- models that are none ----


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes((number << 3, value))
    return bytes((number << 3 | 2, len(value))) + value


def other_model() -> bytes:
    """A valid ONNX model that returns its input: other heads than ours."""
    shape = _field(2, _field(1, _field(2, b"a")) + _field(1, _field(2, b"b")))
    kind = _field(2, _field(1, _field(1, 7) + shape))
    node = _field(1, _field(1, b"input_ids") + _field(2, b"heads") + _field(4, b"Identity"))
    graph = node + _field(2, b"g") + _field(11, _field(1, b"input_ids") + kind)
    return _field(1, 8) + _field(7, graph + _field(12, _field(1, b"heads") + kind)) + _field(8, _field(2, 17))


def _card(folder, **contents: bytes) -> None:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    files = {
        path.name: (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in (folder / "model.onnx", folder / "vocab.txt")
    }
    (folder / "judge.json").write_text(json.dumps({"files": files, "calibration": {}}))


DAMAGE = {
    "no folder": shutil.rmtree,
    "no card": lambda folder: (folder / "judge.json").unlink(),
    "card is no JSON": lambda folder: (folder / "judge.json").write_bytes(b"\x00\xff{"),
    "card of another form": lambda folder: (folder / "judge.json").write_text('{"files": []}'),
    "card names no files": lambda folder: (folder / "judge.json").write_text(
        '{"files": {}, "calibration": {}}'
    ),
    "no model": lambda folder: (folder / "model.onnx").unlink(),
    "no vocabulary": lambda folder: (folder / "vocab.txt").unlink(),
    "another byte": lambda folder: (folder / "model.onnx").write_bytes(
        b"\x00" + (folder / "model.onnx").read_bytes()[1:]
    ),
    "half a model": lambda folder: (folder / "model.onnx").write_bytes(
        (folder / "model.onnx").read_bytes()[:1_000]
    ),
    "no ONNX, its hash right": lambda folder: _card(folder, **{"model.onnx": b"abc"}),
    "another ONNX, its hash right": lambda folder: _card(folder, **{"model.onnx": other_model()}),
    "vocabulary is no text, its hash right": lambda folder: _card(folder, **{"vocab.txt": b"\xff\xfe\n"}),
}


@pytest.fixture(params=DAMAGE.values(), ids=DAMAGE)
def damaged(request, monkeypatch, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(judge.FOLDER, folder)
    request.param(folder)
    monkeypatch.setattr(judge, "FOLDER", folder)
    judge.shared_judge.cache_clear()
    yield folder
    judge.shared_judge.cache_clear()


def test_a_model_that_is_none_is_reported_and_turns_go_on(damaged, resident):
    assert not [one for one in resident.before_turn("Who is Anna?").skipped if "failed" in one.reason]
    resident.after_turn("No, that's wrong: it is Friday.", "Understood.")
    findings = [one for one in resident.doctor() if "judged by rules alone" in one.message]
    assert [(one.level, one.next) for one in findings] == [("warning", "reinstall nanoclaw-memory")]
    assert judge.shared_judge()[1]


# ---- switched off ----


def test_a_judge_that_is_switched_off_is_not_loaded(open_memory, monkeypatch):
    memory = open_memory(judge__enabled="false", embeddings__provider="none")
    memory.init()
    memory.group.resources.resident = True
    monkeypatch.setattr(judge, "shared_judge", lambda: pytest.fail("loaded"))
    memory.before_turn("Who is Anna?")
    memory.after_turn("No, that's wrong: it is Friday.", "Understood.")
    assert memory.group.resources.judge is None
    findings = [one for one in memory.doctor() if "judge.enabled is false" in one.message]
    assert [one.level for one in findings] == ["note"]
