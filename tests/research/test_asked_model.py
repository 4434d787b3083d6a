"""The language model asks about every group, and no question is judged by a model tuned on it."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed, which runs the language model")

from tests.tiny_gguf import tiny_tensors, write_gguf  # noqa: E402

from suffice_research.training import asked_model  # noqa: E402
from suffice_research.training.asked_data import AskedQuestion, Document, Group  # noqa: E402
from suffice_research.training.asked_model import (  # noqa: E402
    AskingModel,
    Example,
    Tuning,
    ask_all,
    draw_example,
    judge,
    judge_all,
    judge_lists,
    load_model,
    other_half,
)
from suffice_research.training.language_model import open_gguf  # noqa: E402

DOCS = tuple(
    Document(*one) for one in (("Lease", "Rent: 900."), ("", "No pets."), ("Tip", "Ring twice."))
)
LEASE = Group(7, "everyday/people", "learn", "How high is the rent?", (0,), DOCS, ("a", "b", "c"))
GROUPS = [
    LEASE,
    replace(LEASE, case=8, question="May I have a dog?", needed=(1,)),
    replace(LEASE, case=9, question="Is the rent due, and may I have a cat?", needed=(0, 1)),
    replace(LEASE, case=10, question="When is the lift repaired?", needed=()),
    replace(LEASE, case=11, part="test"),
    replace(LEASE, case=12, part="unseen", source="everyday/home_texts"),
]
SHORT = Tuning(0.2, rate=1e-3, asking=0.45, tokens=1000)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", tiny_tensors())


@pytest.fixture(scope="module")
def model(path) -> AskingModel:
    torch.manual_seed(0)
    return load_model(open_gguf(path)).eval()


def test_examples_ask_for_the_needed_documents_or_judge_them(model):
    draw = np.random.default_rng(0)
    for group in GROUPS[:4]:
        asking = draw_example(model, group, 1.0, draw)
        text = model.tokenizer.decode(asking.ids[asking.question : -1])
        assert (text, asking.ids[-1]) == (f" {group.question}", model.end)
        head = model.tokenizer.decode(asking.ids[: asking.question])
        assert head.endswith("\nQuestion:")
        assert ("Needed: none" in head) == (not group.needed)
        sizes = set()
        for _ in range(30):
            judging = draw_example(model, group, 0.0, draw)
            sizes.add(len(judging.labels))
            assert not judging.question
            read = model.tokenizer.decode(judging.ids)
            assert all(model.tokenizer.decode([judging.ids[at]]) == "?" for at in judging.places)
            held = [DOCS[at].text in read for at in group.needed]
            assert sum(judging.labels[:-1]) == sum(held)
            assert judging.labels[-1] == (bool(held) and all(held))
        assert (len(sizes) > 1) == bool(group.needed)


def test_questions_are_judged_alike_together_and_alone(model):
    asked = [
        [AskedQuestion(7, (0,), "How high is the rent?"), AskedQuestion(7, (), "Who rings twice?")],
        [AskedQuestion(8, (1,), "Are dogs allowed?")],
    ]
    found = judge(model, GROUPS[:2], asked)
    alone = judge_lists(model, [(DOCS, one.question) for row in asked for one in row])
    assert [one.question for one in found] == [one.question for row in asked for one in row]
    for one, p in zip(found, alone, strict=True):
        np.testing.assert_allclose(one.p, p, atol=2e-3)


def test_every_group_to_learn_from_is_asked_about_and_judged(path, capsys, monkeypatch):
    tuned = []
    draw_batches = asked_model.draw_batches

    def recorded(
        model: AskingModel, groups: list[Group], tuning: Tuning
    ) -> Iterator[list[Example]]:
        tuned.append({one.case for one in groups})
        return draw_batches(model, groups, tuning)

    monkeypatch.setattr(asked_model, "draw_batches", recorded)
    asked = list(ask_all(path, GROUPS, SHORT, most=64))
    assert sorted({one.case for one in asked}) == [7, 8, 9, 10]
    assert len(asked) == 4 * 12
    judged = list(judge_all(path, GROUPS, asked, replace(SHORT, asking=0.0)))
    assert sorted((one.case, one.question) for one in judged) == sorted(
        (one.case, one.question) for one in asked
    )
    assert all(len(one.p) == 4 and 0 <= min(one.p) <= max(one.p) <= 1 for one in judged)
    halves = [{one.case for one in GROUPS[:4] if other_half(one.question) == n} for n in (0, 1)]
    assert all(halves)
    assert tuned == [{7, 8, 9, 10}, halves[1], halves[0]]
    assert "unseen everyday/home_texts" in capsys.readouterr().out
