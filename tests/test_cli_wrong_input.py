"""What a new user types wrong: each is an error with a hint before any work, and loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.commands import as_json, suffice

from suffice.cli.serve import _check_openable
from suffice.service.settings import Settings

DOCUMENTS = [
    {"doc_id": "mara", "text": "Mara Lindqvist is the head of returns."},
    {"doc_id": "office", "text": "Mara Lindqvist moved to the Gothenburg office in March."},
]
QUESTION = {"question_id": "q1", "question": "Where is the head of returns?", "gold": ["mara"]}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: documents, a library, questions, labels and hits."""
    folder = tmp_path_factory.mktemp("desk")
    label = {"question": "Who?", "hits": ["Mara."], "complete": True}
    lines: dict[str, list[Any]] = {"documents": DOCUMENTS, "questions": [QUESTION]}
    lines["labels"] = [label]
    lines["scores"] = [{**label, "gold": [], "hits": [{"text": "Mara.", "score": "high"}]}]
    lines["blank"] = [{**label, "gold": [], "question": " "}]
    for name, records in lines.items():
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "hits.json").write_text('[{"id": "mara"}, {"id": "nobody"}]', encoding="utf-8")
    (folder / "report.docx").write_bytes(b"PK\x03\x04")
    (folder / "bare.jsonl").write_text('{"content": "Mara."}\n', encoding="utf-8")
    (folder / "blank").mkdir()
    (folder / "blank" / "empty.txt").touch()
    built = suffice("build", folder / "documents.jsonl", "--out", folder / "library")
    assert built.exit_code == 0, built.output
    return folder


DATA = "--dataset jsonl --corpus documents.jsonl --questions questions.jsonl"
LONG = "x" * 5000
FIT = "fit --out x --dataset musique"
CONTROLLED = "retrieval --collection controlled"
ASK = "ask library Who?"
IMPROVE = "improve library --out made --preset fast"
WRONG = [
    ("build", "give a folder or a file"),
    ("build missing.jsonl", "does not exist"),
    ("build --dataset hotpot x", "no format is named 'hotpot'"),
    ("build a --path b", "given twice"),
    ("search nowhere hello", "nowhere is not a library"),
    ("search library Who? --filter {", "not valid JSON"),
    ("search library Who? --filter []", "is not a JSON object"),
    ("search library Who? --gate default", "add --complete"),
    ("search library Who? --model stand-in", "add --filter auto"),
    ("search library Who? --library library", "there are two libraries"),
    ("improve library --library library", "there are two libraries"),
    ("doctor library --library library", "there are two libraries"),
    ("search Who? library", "the library comes first"),
    (f"search |{'Who taught Ada? ' * 30}| library", "the library comes first"),
    ("search --library library", "a library and a question"),
    (f"{ASK} --library library", "there are two libraries"),
    ("ask Who? library", "the library comes first"),
    ("ask library", "for example: suffice ask"),
    (f"{ASK} --gate nowhere", "nowhere is not a gate"),
    (f"{ASK} --gate fast --preset hardened", "fast is not a gate"),
    (f"{ASK} --retriever nowhere", "no retriever is named"),
    (f"{ASK} --trace nowhere/trace.jsonl", "the folder nowhere does not exist"),
    (f"{ASK} --trace .", "Invalid value for '--trace'"),
    (f"{ASK} --replay nowhere.jsonl", "--replay FILE, not both"),
    (f"{ASK} --base-url http://127.0.0.1:9/v1", "needs --model"),
    (f"{ASK} --model m --base-url localhost:9", "not an address"),
    ("evaluate retrieval --retriever tfidf", "either --collection or --dataset"),
    ("evaluate retrieval --collection magaf", "no dataset is named 'magaf'"),
    (f"evaluate {CONTROLLED} --k 0", "--k is '0'"),
    (f"evaluate {CONTROLLED} --k two", "--k is 'two'"),
    (f"evaluate {CONTROLLED} --retriever tf-idf", "no retriever"),
    (f"evaluate {CONTROLLED} --retriever ,", "no retriever is named"),
    (f"evaluate {CONTROLLED} --out .", "Invalid value for '--out'"),
    ("evaluate gate", "give either --collection or --dataset"),
    ("evaluate gate --collection controlled --retriever bm52", "no retriever is named 'bm52'"),
    ("evaluate gate --collection controlled --gate nowhere", "nowhere is not a gate"),
    ("evaluate gate --collection controlled --out .", "Invalid value for '--out'"),
    ("evaluate difficulty labels.jsonl --benchmark blank", "none of the files"),
    ("report run.json --out .", "Invalid value for '--out'"),
    ("check", "give a question with --hits"),
    ("check --hits x.json", "needs the question"),
    ("check Who? --batch x.jsonl", "bring their own questions"),
    ("check Who? --hits nowhere.json", "does not exist"),
    ("check Who? --hits blank/empty.txt", "is empty"),
    ("fit --out x", "give one of --examples, --dataset or --benchmark"),
    ("fit --out x --examples nowhere.jsonl", "does not exist"),
    (f"{FIT} --policy luck", "no policy is named 'luck'"),
    (f"{FIT} --alpha 2", "alpha is 2.0"),
    (f"{FIT} --costs 1,2", "expected three numbers"),
    (f"{FIT} --preset best", "no preset is named 'best'"),
    (f"{IMPROVE} --stage gates", "no stage is named 'gates'"),
    (f"{IMPROVE} --questions 59", "too few"),
    (f"{IMPROVE} --k 40", "the gate reads 10 hits"),
    (f"{IMPROVE} --retriever bm52", "bm52"),
    (f"{IMPROVE} --ask nowhere.txt", "nowhere.txt"),
    (f"{IMPROVE} --labels nowhere.jsonl", "nowhere.jsonl"),
    ("grade --out made", "the corpus is missing"),
    ("grade documents.jsonl --out made --prices cheap", "two numbers"),
    ("grade documents.jsonl --out made --forms sonnet", "no form is named"),
    ("grade documents.jsonl --out made --model m --model-stages cooking", "no stage is named"),
    ("serve --host 0.0.0.0", "can be reached from other machines"),
    ("serve --gate nowhere", "nowhere is not a gate"),
    ("serve --gate a=default --gate a=default", "two gates are named 'a'"),
    ("serve --library nowhere", "nowhere is not a library"),
    ("serve --library qdrant://a:6333", "is not the address of a collection"),
    ("serve --limit concurrent_reqests=3", "did you mean 'concurrent_requests'"),
    ("serve --limit concurrent_requests=many", "'many' is not a number"),
    ("serve --preset best", "no preset is named 'best'"),
    ("serve --label nowhere.jsonl", "nowhere.jsonl does not exist"),
    ("serve --label labels.jsonl", "both the questions and their labels"),
    ("serve --labels nowhere/labels.jsonl", "cannot store labels"),
    ("serve --labels labels.jsonl --workers 2", "--workers 2 cannot label"),
    ("search library |", "give both a library and a question"),
    ("search library |  |", "give both a library and a question"),
    ("search library Who? --base-url http://127.0.0.1:1/v1", "--base-url needs --model"),
    ("check |  | --library library", "--library needs the question"),
    ("check --batch labels.jsonl --corpus documents.jsonl", "--corpus goes with --run"),
    ("grade documents.jsonl --out made --prices nan,0", "expected two numbers of at least 0"),
    ("build blank --out new", "has no document; the first problem: blank/empty.txt: is empty"),
    ("build documents.jsonl --export hits.json", "--export"),
    (
        "improve blank/empty.txt --out improved",
        "has no document; the first problem: blank/empty.txt",
    ),
    ("report --shadow blank/empty.txt", "has no verdict"),
    ("report none.json", "cannot be read"),
    ("mcp --library nowhere", "nowhere is not a library"),
    ("evaluate gate --collection controlled --fail-if rsik>0.1", "did you mean 'risk'"),
    ("evaluate gate --collection controlled --junit gate.xml", "--junit needs --fail-if"),
    ("check --batch labels.jsonl --scheduler 127.0.0.1:8786", "like tcp://127.0.0.1:8786"),
    ("check --batch labels.jsonl --scheduler tcp://host:port", "like tcp://127.0.0.1:8786"),
    ("check --batch labels.jsonl --checkpoint hits.json/blocks", "cannot be a folder"),
    ("adapt nowhere.jsonl --out gate", "does not exist"),
    ("adapt labels.jsonl --out blank", "is not a gate"),
    ("adapt labels.jsonl --out gate --gate nowhere", "nowhere is not a gate"),
    ("adapt labels.jsonl --out gate --gate fast", "19 more"),
    ("build report.docx --out new", "report.docx is of a type that suffice does not read"),
    ("build bare.jsonl --out new", "without ids: --dataset folder"),
    ("adapt labels.jsonl --out gate --alpha nan", "alpha is nan"),
    ("adapt labels.jsonl --out gate --alpha 0.1 --delta -1", "delta is -1.0"),
    ("adapt labels.jsonl --out gate --seed -1", "--seed"),
    ("fit --examples labels.jsonl --out gate --costs -1,0,0", "expected a finite number"),
    ("fit --examples scores.jsonl --out gate", "scores.jsonl:1: hit 1: its score is of type str"),
    ("fit --examples labels.jsonl --out gate", "to adapt a gate: suffice adapt labels.jsonl"),
    ("fit --examples blank.jsonl --out gate", "blank.jsonl:1: expected 'question'"),
    ("grade documents.jsonl --out made --forms |", "--forms names no form"),
    ("grade documents.jsonl --out made --base-url http://127.0.0.1:1/v1", "needs --model"),
    ("grade documents.jsonl --out made --seed -1", "--seed"),
    (f"evaluate retrieval {DATA} --seed 4294967296", "--seed"),
    (f"evaluate retrieval {DATA} --out hits.json/run.json", "cannot be written"),
    (f"evaluate gate {DATA} --fail-if auroc<0.5 --junit hits.json/x.xml", "cannot be written"),
    ("judge labels.jsonl --out hits.json/labels.jsonl", "cannot be written"),
    ("report --shadow labels.jsonl --labels hits.json/ask.jsonl", "cannot be written"),
    ("serve --base-url http://127.0.0.1:1/v1", "--base-url needs --model"),
    ("serve --model qwen --base-url nowhere", "is not an address"),
    ("serve --gate-folder hits.json", "expected a folder for new gates"),
    ("serve --shadow-texts", "--shadow-texts needs --shadow"),
    ("mcp --shadow-texts", "--shadow-texts needs --shadow"),
    ("serve --limit seconds=0", "expected a number above 0"),
    (f"check Who? --hits {LONG}", "File name too long"),
    (f"doctor {LONG}", "File name too long"),
    (f"adapt labels.jsonl --out hits.json/gate/{LONG}", "File name too long"),
]


@pytest.mark.parametrize(("typed", "says"), WRONG)
def test_wrong_input_is_an_error_with_a_hint(
    desk: Path, monkeypatch: pytest.MonkeyPatch, typed: str, says: str
) -> None:
    monkeypatch.chdir(desk)
    before = {path: path.read_bytes() for path in desk.glob("*.json*")}
    result = suffice(*split(typed))
    assert result.exit_code == 2, result.output
    assert says in " ".join(result.stderr.split())
    assert "hint: " in result.stderr or "--help' for help" in result.stderr
    assert {path: path.read_bytes() for path in desk.glob("*.json*")} == before


def split(typed: str) -> list[str]:
    """Words at spaces; what stands between two bars, or after the last one, is one word."""
    words: list[str] = []
    for place, part in enumerate(typed.split("|")):
        words += [part] if place % 2 else part.split()
    return words


def test_a_labelled_question_with_a_bad_hit_can_be_skipped(desk: Path, tmp_path: Path) -> None:
    words = ("--examples", desk / "scores.jsonl", "--out", tmp_path / "gate", "--skip-bad")
    assert "0 labelled examples" in suffice("fit", *words, "--preset", "fast").stderr


def test_a_hit_that_the_library_lacks_is_named(desk: Path) -> None:
    words = ("--hits", desk / "hits.json", "--library", desk / "library", "--preset", "fast")
    result = suffice("check", "Where is Mara?", *words)
    assert result.exit_code == 0, result.output
    assert "has no document 'nobody': checked without its text" in result.stderr


def test_serving_without_any_key_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _check_openable(Settings(keys=str(tmp_path / "keys.json"), preset="fast"))
    assert "has no key, so no client has access" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["corpus", "library"])
def test_gold_that_no_search_can_find_is_a_warning(where: str, desk: Path, tmp_path: Path) -> None:
    lost = {"question_id": "q2", "question": "Who is the head of returns?", "gold": ["atlantis"]}
    file = tmp_path / "questions.jsonl"
    file.write_text(f"{json.dumps(QUESTION)}\n{json.dumps(lost)}\n", encoding="utf-8")
    words = ["evaluate", "retrieval", "--retriever", "bm25", "--dataset", "jsonl"]
    words += ["--questions", str(file), "--corpus", str(desk / "documents.jsonl")]
    words += ["--library", str(desk / "library")] if where == "library" else []
    result = suffice(*words)
    assert result.exit_code == 0, result.output
    warning = f"warning: 1 gold documents are not in the {where} and count as not found"
    assert f"{warning}, like 'atlantis' of question 'q2'" in result.stderr
    assert "warning" not in suffice(*words, "--limit", "1").stderr


def test_json_that_is_not_ours_is_read_as_the_hint_says(desk: Path, tmp_path: Path) -> None:
    found = suffice("build", desk / "bare.jsonl", "--dataset", "folder", "--out", tmp_path / "new")
    assert found.exit_code == 0, found.output
    assert "library of 1 document at" in found.output


BOM = "\ufeff"


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\n\r\n"])
def test_hits_may_come_one_per_line_and_from_windows(end: str, given: bool, tmp_path: Path) -> None:
    text = BOM + end.join(json.dumps(one) for one in DOCUMENTS) + end
    file = tmp_path / "hits.jsonl"
    file.write_text(text, encoding="utf-8", newline="")
    words = ("check", "Where is Mara?", "--preset", "fast", "--json", "--hits")
    found = suffice(*words, "-", given=text) if given else suffice(*words, file)
    (tmp_path / "hits.json").write_text(json.dumps(DOCUMENTS), encoding="utf-8")
    assert as_json(found) == as_json(suffice(*words, tmp_path / "hits.json"))
    line = BOM + json.dumps({"question": "Where is Mara?", "hits": DOCUMENTS})
    many = suffice("check", "--batch", "-", "--preset", "fast", given=line)
    assert "1 question: 1 expand" in many.output


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A named pipe that gives this text once, as `<(command)` in a shell does."""
    writers: list[Thread] = []

    def make(text: str) -> Path:
        path = tmp_path / f"pipe-{len(writers)}"
        os.mkfifo(path)
        writers.append(Thread(target=path.write_text, args=(text,)))
        writers[-1].start()
        return path

    yield make
    for writer in writers:
        writer.join(timeout=10)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_hits_and_batches_may_come_from_a_pipe(pipe: Callable[[str], Path], tmp_path: Path) -> None:
    words = ("--preset", "fast", "--json")
    (tmp_path / "hits.json").write_text(json.dumps(DOCUMENTS), encoding="utf-8")
    check = ("check", "Where is Mara?", *words, "--hits")
    from_pipe = suffice(*check, pipe(json.dumps(DOCUMENTS)))
    assert as_json(from_pipe) == as_json(suffice(*check, tmp_path / "hits.json"))
    line = json.dumps({"question": "Where is Mara?", "hits": DOCUMENTS})
    assert "1 question" in suffice("check", "--batch", pipe(line), *words).output
    bad = suffice("check", "--batch", pipe("{"), *words)
    assert bad.exit_code == 2
    assert "pipe-2:1: not valid JSON" in bad.output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_file_that_is_read_twice_cannot_be_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "labels")
    result = suffice("adapt", tmp_path / "labels", "--out", tmp_path / "gate")
    assert result.exit_code == 2
    assert "labels is a pipe, expected a file" in result.output


def test_a_blank_question_in_a_batch_is_not_judged() -> None:
    lines = "".join(json.dumps({"question": one, "hits": ["Ada."]}) + "\n" for one in ("Who?", " "))
    stopped = suffice("check", "--batch", "-", "--preset", "fast", given=lines)
    assert stopped.exit_code == 2
    assert "stdin:2: expected a 'question' text" in stopped.output
    skipped = suffice("check", "--batch", "-", "--preset", "fast", "--skip-bad", given=lines)
    assert skipped.exit_code == 0
    assert "skipped 1 bad records" in skipped.output


def test_commands_speak_utf_8_in_every_locale() -> None:
    words = [sys.executable, "-m", "suffice", "check", "--batch", "-", "--preset", "fast", "--json"]
    line = json.dumps(
        {"question": "Wo ist \u2713 Zo\u00eb?", "hits": ["Zo\u00eb."]}, ensure_ascii=False
    )
    options: Any = {"env": {**os.environ, "PYTHONIOENCODING": "cp1252"}, "capture_output": True}
    done = subprocess.run(words, input=line.encode(), **options, check=True)
    assert json.loads(done.stdout)["question"] == "Wo ist \u2713 Zo\u00eb?"
    done = subprocess.run(words, input=line.encode("cp1252", "replace"), **options, check=False)
    assert (done.returncode, b"not UTF-8" in done.stderr) == (2, True)
