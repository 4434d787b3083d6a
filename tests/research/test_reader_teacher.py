"""The reader learns from the lists that a teacher has read, and from no others by mistake."""

import json
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed, which trains the reader")

from tests.research.test_reader_data import tokenizer  # noqa: E402, F401
from tests.tiny_gguf import tiny_tensors, write_gguf  # noqa: E402

from suffice_research.training import reader_teacher, reader_training  # noqa: E402
from suffice_research.training.asked_model import load_model  # noqa: E402
from suffice_research.training.cases import Case, Passage  # noqa: E402
from suffice_research.training.language_model import open_gguf  # noqa: E402
from suffice_research.training.reader_data import pack  # noqa: E402
from suffice_research.training.reader_lists import Pack, collate, draw_lists  # noqa: E402
from suffice_research.training.reader_model import Reader, Shape  # noqa: E402
from suffice_research.training.reader_training import TeacherLabels, pools_of  # noqa: E402


@pytest.fixture(scope="module")
def packed(tmp_path_factory, tokenizer):  # noqa: F811
    cases = []
    for number in range(8):
        docs = [Passage(f"Note {number}.{at}", f"Item {at} of shelf {number}.") for at in range(9)]
        asked = f"What is item 1 of shelf {number}?"
        part = ("learn", "learn", "test", "unseen")[number % 4]
        cases.append(
            Case("everyday/notes", str(number), asked, (docs[1],), (*docs[2:], docs[0]), part=part)
        )
    path = tmp_path_factory.mktemp("pack") / "pack.npz"
    pack(cases, tokenizer, path)
    return path


@pytest.fixture(scope="module")
def taught(packed, tmp_path_factory, tokenizer):  # noqa: F811
    folder = tmp_path_factory.mktemp("teacher")
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    model = write_gguf(folder / "tiny.gguf", tiny_tensors())
    reader_teacher.main(
        [
            *(str(packed), "--model", str(model), "--tokenizer", str(folder / "tokenizer.json")),
            *("--seconds", "0.2", "--reading", "0.5", "--workers", "0", "--most", "2"),
            *("--out", str(folder)),
        ]
    )
    assert {"test", "unseen"} == set(json.loads((folder / "teacher.json").read_text()))
    return folder / "taught.npz"


def test_the_teacher_reads_question_title_and_text_and_answers_for_each_hit(
    packed,
    tmp_path,
    tokenizer,  # noqa: F811
):
    pack_ = Pack(packed)
    model = load_model(open_gguf(write_gguf(tmp_path / "tiny.gguf", tiny_tensors())))
    texts = reader_teacher._Texts(pack_, tokenizer, model.tokenizer)
    for listed in draw_lists(pack_, pools_of(pack_), 16, np.random.default_rng(0)):
        example = texts.example(listed)
        assert example.labels == (*(float(one.needed) for one in listed.hits), listed.complete)
        assert len(example.places) == len(listed.hits) + 1
        text = model.tokenizer.decode(example.ids)
        question = tokenizer.decode(listed.question.tolist())
        assert text.count(f"Question: {question}\n") == 2
        assert f"[{len(listed.hits)}]" in text


def test_what_the_teacher_said_is_found_again_for_the_same_lists(packed, taught):
    pack_ = Pack(packed)
    found = TeacherLabels(taught, pack_)
    for step in range(len(found)):
        lists = found.draw(step)
        assert all(len(one.taught) == len(one.hits) + 1 for one in lists)
        assert all(0 <= min(one.taught) <= max(one.taught) <= 1 for one in lists)
    batch = collate(pack_, lists, np.random.default_rng(0))
    np.testing.assert_allclose(batch.taught_complete, [one.taught[-1] for one in lists])
    assert ((batch.taught_needed >= 0) == (batch.needed >= 0)).all()


@pytest.mark.parametrize("name", ["missing.npz", "taught.npz"])
def test_a_file_that_is_no_pack_ends_the_command(taught, name, capsys):
    path = str(taught.with_name(name))
    teacher = [path, "--model", "tiny.gguf", "--tokenizer", "tokenizer.json"]
    training = [path, "--minilm", "minilm.npz", "--steps", "1"]
    for main, words in ((reader_teacher.main, teacher), (reader_training.main, training)):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
        assert f"error: {path} is not a pack" in capsys.readouterr().err


def test_lists_of_another_pack_are_refused(packed, taught):
    found = TeacherLabels(taught, Pack(packed))
    found.sizes = found.sizes + 1
    with pytest.raises(SystemExit, match="other lists"):
        found.draw(0)


def test_a_teacher_moves_the_targets_only_of_lists_that_it_has_read():
    labels, said = torch.tensor([1, 0, 1, 0]), torch.tensor([-1.0, -1.0, 0.0, 1.0])
    found = reader_training._targets(labels, said)
    smooth, share = reader_training.SMOOTHING, reader_training.TAUGHT
    expected = [1 - smooth, smooth, (1 - share) * (1 - smooth), share + (1 - share) * smooth]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_training_takes_every_second_batch_from_the_teacher(packed, taught):
    pack_ = Pack(packed)
    batches = iter(reader_training._Batches(pack_, 8, range(4), 0, TeacherLabels(taught, pack_)))
    read = [bool((one["taught_complete"] >= 0).all()) for one in batches]
    assert read == [False, True, False, True]


def test_a_deep_reader_has_the_trained_layers_where_the_base_has_them():
    trained = {"pair.0.up.bias": 0, "pair.3.norm.weight": 6, "joint.1.up.bias": 1, "whole": 2}
    found = reader_training.at_base_layers(trained)
    names = ["pair.0.up.bias", "pair.6.norm.weight", "joint.1.up.bias", "whole"]
    assert found == dict(zip(names, trained.values(), strict=True))


def test_a_deep_reader_may_be_trained_on():
    deep = {"pair.4.up.bias": 0, "pair.6.up.bias": 1}
    assert reader_training.at_base_layers(deep) == deep


def test_a_file_that_is_no_state_ends_before_the_training(packed, tmp_path):
    state = tmp_path / "state.pt"
    state.write_text("not a state")
    options: Any = {"steps": 1, "windows": 8, "rate": 1e-3, "seed": 0, "limit_s": 1.0, "workers": 0}
    model = Reader(Shape(hidden=24, heads=2, inner=32, pair=1, joint=1))
    with pytest.raises(SystemExit, match=r"state\.pt is not the state"):
        reader_training.train(model, Pack(packed), **options, state=state)
    new = tmp_path / "new" / "state.pt"  # a folder that is not there costs no training
    reader_training.train(model, Pack(packed), **options, state=new)
    assert new.is_file()


def test_a_training_in_several_calls_is_that_of_one(packed, tmp_path):
    def trained(calls: int, limit_s: float, state=None):
        for _ in range(calls):  # each starts anew, and goes on from the state
            torch.manual_seed(0)
            small = Shape(hidden=24, heads=2, inner=32, pair=1, joint=1, dropout=0.0)
            model = Reader(small)
            reader_training.train(
                model, Pack(packed), steps=3, windows=8, rate=1e-3, seed=0, limit_s=limit_s,
                whole_s=1e9, state=state, workers=0,
            )  # fmt: skip
        return model.state_dict()

    state = tmp_path / "state.pt"
    whole = trained(1, 1e9)
    torch.testing.assert_close(trained(3, 0.0, state), whole, rtol=0, atol=0)
    assert torch.load(state, weights_only=True)["steps"] == 3
    torch.testing.assert_close(trained(1, 1e9, state), whole, rtol=0, atol=0)  # nothing is left
