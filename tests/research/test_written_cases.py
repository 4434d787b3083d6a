"""A language model writes cases; the reader learns from them only what a teacher says of them."""

import gzip
import json
from dataclasses import asdict, replace

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is not installed, which the language model needs"
)

from tests.research.test_asked_questions import LEASE  # noqa: E402
from tests.research.test_reader_data import tokenizer  # noqa: E402, F401
from tests.tiny_gguf import tiny_tensors, write_gguf  # noqa: E402

from suffice_research.training import asked_questions, written_cases  # noqa: E402
from suffice_research.training.asked_data import save_rows  # noqa: E402
from suffice_research.training.cases import Case, Passage  # noqa: E402
from suffice_research.training.reader_data import pack  # noqa: E402
from suffice_research.training.reader_data import written_cases as load_written  # noqa: E402
from suffice_research.training.reader_lists import UNLABELLED, WEIGHTS, WRITTEN, Pack, draw_lists  # noqa: E402
from suffice_research.training.reader_training import (  # noqa: E402
    TeacherLabels,
    pools_of,
    taught_weights,
)
from suffice_research.training.written_cases import case_of, case_text  # noqa: E402


def test_a_group_as_a_text_is_the_same_case_again():
    case = case_of("everyday/people", case_text(LEASE))
    assert case is not None
    assert (case.question, case.docs) == (LEASE.question, LEASE.docs[:1])
    assert case.distractors == LEASE.docs[1:]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "When is it due?",
        "When is it due?\n+ Lease | The rent is due on the third.",  # too few documents
        "When?\n" + "- | The heating is serviced in May.\n" * 3,  # too short a question
        "When is it due?\n" + "- The heating is serviced in May.\n" * 3,  # no title
        "When is it due?\n" + "- Lease | Rent\n" * 3,  # hardly a text
        "When is it due?\n" + "* Lease | The rent is due on the third.\n" * 3,
    ],
)
def test_other_texts_are_no_cases(text):
    assert case_of("everyday/people", text) is None


def test_the_model_is_tuned_and_writes_until_the_time_is_over(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(written_cases, "SLOTS", 3)
    monkeypatch.setattr(written_cases, "LONGEST", 60)
    monkeypatch.setattr(written_cases, "case_of", lambda like, _: case_of(like, case_text(LEASE)))
    groups, out = tmp_path / "groups.jsonl", tmp_path / "written.jsonl"
    save_rows([LEASE, replace(LEASE, source="squad2"), replace(LEASE, part="test")], groups)
    model = write_gguf(tmp_path / "tiny.gguf", tiny_tensors())
    arguments = ["write", str(groups), "--model", str(model), "--out", str(out)]
    assert asked_questions.main([*arguments, "--seconds", "0.2", "--writing", "1"]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["like"] for row in rows} <= {"everyday/people", "squad2"}
    assert f"{len(rows):,} cases" in capsys.readouterr().out


def test_without_a_group_to_write_like_there_is_a_clear_error(tmp_path, capsys):
    groups = tmp_path / "groups.jsonl"
    save_rows([replace(LEASE, part="test")], groups)
    arguments = ["write", str(groups), "--model", "no.gguf", "--out", str(tmp_path / "out.jsonl")]
    assert asked_questions.main(arguments) == 2
    assert "no group of part learn" in capsys.readouterr().err


def rows_of(*numbers: int) -> list[dict[str, object]]:
    case = case_of("everyday/people", case_text(LEASE))
    assert case is not None
    found = []
    for number in numbers:
        row = json.loads(json.dumps(asdict(case)).replace(".", f" in flat {number}."))
        found.append({**row, "question": f"When is the rent of flat {number} due?"})
    return found


def test_a_repeated_or_known_case_is_left_out(tmp_path):
    known = Case(
        "everyday/people", "a", "When is the rent of flat 4 due?", (Passage("", "Rent."),), ()
    )
    shared = {**rows_of(5)[0], "question": "Is there a lift in flat 5?"}
    lines = [json.dumps(row) for row in [*rows_of(1, 2, 1, 4, 5), shared]]
    (tmp_path / "cases.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    found = load_written(tmp_path, [known])
    assert [case.question[-6:-5] for case in found] == ["1", "2", "5"]
    assert {(case.source, case.part) for case in found} == {(WRITTEN, "learn")}


def test_without_labels_the_teacher_decides(tmp_path, tokenizer):  # noqa: F811
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, rows_of(*range(12)))))
    cases = load_written(tmp_path, [])
    own = [replace(case, source="everyday/people") for case in load_written(tmp_path, [])]
    pack([*cases, *own], tokenizer, tmp_path / "pack.npz")
    packed = Pack(tmp_path / "pack.npz")
    pools = pools_of(packed)
    assert taught_weights(pools, 0) == WEIGHTS
    assert taught_weights(pools, 1) == UNLABELLED
    assert taught_weights({}, 1) == WEIGHTS
    sizes = []
    for step in range(2):  # as a teacher would draw them
        draw = np.random.default_rng([2, step])
        lists = draw_lists(packed, pools, 16, draw, taught_weights(pools, step))
        sizes.append([len(one.hits) + 1 for one in lists])
    flat = [size for row in sizes for size in row]
    p = np.concatenate([np.r_[np.full(size - 1, 0.2), 0.9] for size in flat])
    np.savez(
        tmp_path / "taught.npz", seed=2, windows=16, lists=list(map(len, sizes)), sizes=flat, p=p
    )
    found = TeacherLabels(tmp_path / "taught.npz", packed)
    assert {one.complete for one in found.draw(0)} == {True, False}
    for one in found.draw(1):
        assert one.complete
        assert not any(hit.needed for hit in one.hits)
        assert (one.answer, one.count, len(one.answers)) == (-1, 0, 0)
