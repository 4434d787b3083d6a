"""A language model asks about single passages; questions that it answers as it meant are kept."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.tiny_gguf import tiny_tensors, write_gguf

from suffice.errors import InputError
from suffice_research.training import asked_questions
from suffice_research.training.asked_data import save_rows
from suffice_research.training.cases import Case, Passage, Span, shown_passages
from suffice_research.training.passage_questions import (
    AskedChain,
    KnownChain,
    KnownQuestion,
    PassageQuestion,
    SinglePassage,
    chain_questions,
    keep_chains,
    keep_questions,
    known_chains,
    known_questions,
    load_records,
    passages_to_ask,
)

INFERNO = SinglePassage(
    "a",
    "hotpotqa",
    "Inferno (film)",
    "Inferno is a 1980 horror film by Dario Argento, shot in Rome.",
)
ARGENTO = SinglePassage(
    "b", "hotpotqa", "Dario Argento", "Dario Argento, born in 1940, is an Italian film director."
)
DIRECTED = PassageQuestion("a", "Who directed the film Inferno?", "Dario Argento", 0.9)
BORN = PassageQuestion("b", "When was Dario Argento born?", "1940", 0.9)


def lease(part="learn"):
    rent = Passage("Lease", "The rent for the flat is due on the third of each month, by transfer.")
    heating = Passage("Heating", "The heating of the flat is serviced in May by Kahn and Sons.")
    start = rent.text.index("the third")
    return Case(
        "everyday/home", "rent", "When is the rent due?", (rent,), (heating,),
        answers=(Span(rent, start, start + 9),), part=part,
    )  # fmt: skip


def test_only_passages_that_training_may_show_are_asked_about():
    judged = replace(lease("test"), needed=(Passage("Test", "Nothing that is trained on. " * 3),))
    cases = [lease(), judged]
    found = passages_to_ask(cases, shown_passages(cases))
    assert [one.title for one in found] == ["Lease", "Heating"]
    assert [one.others for one in found] == [(1,), (0,)]


def test_a_known_question_comes_with_its_answer_and_with_a_look_alike():
    found = list(known_questions([lease(), lease("test")]))
    assert [(one.title, one.answer) for one in found] == [("Lease", "the third"), ("Heating", "")]


def test_parts_of_known_chains_are_questions_if_they_refer_to_no_other():
    parts = [
        {"question": "Who directed Inferno?", "answer": "Argento", "paragraph_support_idx": 0},
        {"question": "When was #1 born?", "answer": "1940", "paragraph_support_idx": 1},
        {"question": "Inferno >> director", "answer": "Argento", "paragraph_support_idx": 0},
    ]
    texts = [{"title": "", "paragraph_text": one} for one in ("Inferno, by Argento.", "In 1940.")]
    row = {"question": "When?", "question_decomposition": parts, "paragraphs": texts}
    chain, single = known_chains([row])
    assert isinstance(chain, KnownChain)
    assert len(chain.parts) == 3
    assert isinstance(single, KnownQuestion)
    assert single.answer == "Argento"


def test_questions_form_a_chain_where_an_answer_is_the_next_title():
    (chain,) = chain_questions([INFERNO, ARGENTO], [DIRECTED, BORN])
    assert chain.keys == ("a", "b")
    assert chain.parts == ("Who directed the film Inferno?", "When was #1 born?")
    assert chain.answers == ("Dario Argento", "1940")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (replace(DIRECTED, p=0.1), BORN),  # unsure
        (DIRECTED, replace(BORN, question="When was he born?")),  # does not name its title
        (DIRECTED, replace(BORN, answer="1980")),  # the first passage has the answer
    ],
)
def test_other_questions_form_no_chain(first, second):
    assert chain_questions([INFERNO, ARGENTO], [first, second]) == []


def test_a_passage_that_names_what_the_first_asks_about_ends_no_chain():
    alone = replace(ARGENTO, text=ARGENTO.text.replace("director", "director of Inferno"))
    assert chain_questions([INFERNO, alone], [DIRECTED, BORN]) == []


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, "kept"),
        ({"question": "Who?"}, "form"),
        ({"answer": "Mario Bava"}, "answer not in the passage"),
        ({"question": "What did Dario Argento do with Inferno?"}, "answer in the question"),
        ({"p": 0.2}, "answered otherwise"),
        ({"nothing": 0.3}, "a look-alike may answer it"),
        ({"question": "Who painted the town hall?"}, "about something else"),
    ],
)
def test_a_question_is_kept_or_dropped_for_a_reason(changed, reason):
    rows, counts = keep_questions([replace(DIRECTED, **changed)], [INFERNO], ())
    assert dict(counts) == {reason: 1}
    assert len(rows) == (reason == "kept")


def test_no_kept_row_copies_a_public_passage():
    text = "The committee met in the old town hall on the third of May to count the votes of all."
    public = SinglePassage("c", "squad2", "Votes", text)
    copied = PassageQuestion("c", f"Where was it that {text[:70]}?", "count the votes", 0.9)
    assert keep_questions([copied], [public], ())[1] == {"repeats the passage": 1}
    assert keep_questions([copied], [replace(public, source="everyday")], ())[1] == {"kept": 1}


def test_known_and_repeated_questions_are_dropped():
    rows, counts = keep_questions([DIRECTED, DIRECTED, DIRECTED], [INFERNO], ())
    assert (len(rows), counts["asked twice"]) == (1, 2)
    assert not keep_questions([DIRECTED], [INFERNO], {"who directed the film inferno"})[0]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("When was the director of the film Inferno born?", "kept, 2 needed"),
        ("When?", "form"),
        ("When was #1, director of Inferno, born?", "form"),
        ("When was Dario Argento, director of Inferno, born?", "names an answer"),
        ("When was the director of the film born?", "a part is lost"),
    ],
)
def test_a_chain_is_kept_if_its_wording_keeps_the_secret(question, reason):
    chain = AskedChain(
        ("a", "b"), (DIRECTED.question, "When was #1 born?"), ("Dario Argento", "1940")
    )
    rows, counts = keep_chains([replace(chain, question=question)], [INFERNO, ARGENTO], ())
    assert dict(counts) == {reason: 1}
    assert [row["needed"] for row in rows] == [["a", "b"]] * (reason == "kept, 2 needed")


def test_questions_about_passages_that_are_not_there_are_dropped():
    chain = AskedChain(("a", "b"), ("Who made it?", "When was #1 born?"), ("Argento", "1940"))
    missing = {"about a passage that is not there": 1}
    assert keep_questions([BORN], [INFERNO], ())[1] == missing
    assert keep_chains([chain], [INFERNO], ())[1] == missing


def test_a_wrong_row_is_a_clear_error(tmp_path):
    path = tmp_path / "asked.jsonl"
    with pytest.raises(InputError, match="does not exist"):
        load_records(path, PassageQuestion)
    path.write_text('{"key": "a"}\n')
    with pytest.raises(InputError, match=r"line 1 of .* is not a PassageQuestion"):
        load_records(path, PassageQuestion)


def test_kept_rows_are_what_reader_data_reads(tmp_path, monkeypatch):
    from suffice_research.training import cases, reader_data

    monkeypatch.setattr(cases, "load_cases", lambda *_: [lease()])
    folder = tmp_path / "folder"
    folder.mkdir()
    save_rows(passages_to_ask([lease()], shown_passages([lease()])), folder / "passages.jsonl")
    key = lease().needed[0].key
    save_rows(
        [PassageQuestion(key, "On which day is the rent for the flat due?", "the third", 0.9)],
        folder / "asked.jsonl",
    )
    chain = AskedChain(("0",), ("Who?",), ("1",))
    save_rows([chain], folder / "worded.jsonl")
    out = tmp_path / "out"
    arguments = ["keep-passages", str(folder), str(folder), "--data", ".", "--out", str(out)]
    assert asked_questions.main(arguments) == 2  # no chain is kept, which is said
    (row,) = map(json.loads, gzip.decompress((out / "passages.jsonl.gz").read_bytes()).splitlines())
    assert row["answer"] == "the third"
    (case,), left_out = reader_data.asked_cases(out, [lease()])
    assert (case.source, case.needed, left_out) == ("passages/everyday", lease().needed, 0)


@pytest.mark.parametrize("step", ["ask", "judge", "write", "ask-passages"])
def test_without_torch_a_step_with_a_model_says_so(step, monkeypatch, capsys):
    monkeypatch.setattr(asked_questions, "find_spec", lambda _: None)
    files = ["groups.jsonl", *["asked.jsonl"] * (step == "judge")]
    assert asked_questions.main([step, *files, "--model", "m.gguf", "--out", "out"]) == 2
    assert f"{step} needs torch, which is not installed" in capsys.readouterr().err


# ---- with the language model


@pytest.fixture
def model(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed, which the language model needs")
    return write_gguf(tmp_path / "tiny.gguf", tiny_tensors())


def test_the_model_is_tuned_asks_and_words_chains(tmp_path, model, monkeypatch, capsys):
    from suffice_research.training import passage_model

    monkeypatch.setattr(passage_model, "TOGETHER", 4)
    monkeypatch.setattr(passage_model, "LONGEST", 12)
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    save_rows([replace(INFERNO, others=(1,)), ARGENTO], folder / "passages.jsonl")
    known = [
        KnownQuestion("squad2", one.title, one.text, "When was it?", answer)
        for one, answer in ((INFERNO, "1980"), (ARGENTO, ""))
    ]
    save_rows(known, folder / "known.jsonl")
    save_rows([KnownChain(("Who made it?", "When was #1 born?"), "When?")], folder / "chains.jsonl")
    arguments = ["ask-passages", str(folder), "--model", str(model), "--out", str(out)]
    times = ["--seconds", "0.2", "--asking", "5", "--wording", "5"]
    assert asked_questions.main([*arguments, *times]) == 0
    assert "questions in" in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {"asked.jsonl", "worded.jsonl"}


def test_without_a_question_to_tune_on_there_is_a_clear_error(tmp_path, model, capsys):
    for name in ("passages", "known", "chains"):
        (tmp_path / f"{name}.jsonl").write_text("")
    arguments = ["ask-passages", str(tmp_path), "--model", str(model), "--out", str(tmp_path / "o")]
    assert asked_questions.main(arguments) == 2
    assert "no question with an answer to tune on" in capsys.readouterr().err


def test_a_check_depends_on_its_own_text_and_answer_alone(tmp_path, model):
    from suffice_research.training.asked_model import load_model
    from suffice_research.training.language_model import open_gguf
    from suffice_research.training.passage_model import PassageModel, head_text

    made = PassageModel(load_model(open_gguf(model)), np.random.default_rng(0))
    texts = [head_text(one.title, one.text) for one in (INFERNO, ARGENTO, INFERNO)]
    asked, answers = [DIRECTED, BORN, BORN], ["1", "22", "nothing"]
    together = made.check(asked, texts, answers)
    alone = [made.check([a], [t], [w])[0] for a, t, w in zip(asked, texts, answers, strict=True)]
    assert together == pytest.approx(alone, rel=1e-3)
    assert len(set(together)) == 3
