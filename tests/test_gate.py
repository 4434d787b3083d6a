"""The gate from the outside: fit, check, keep."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.small_gate import (
    FITTED,
    auroc,
    collection,
    complete,
    fresh,
    labelled,
    log_loss,
    p_of,
    pairs,
    shown,
    small_gate,
)

from suffice.errors import DataError, InputError, NotReadyError
from suffice.gate import gate as gate_module
from suffice.gate import model as model_module
from suffice.gate.gate import Gate
from suffice.gate.gate_ref import GateRef, open_gate
from suffice.gate.policy import Costs, choose_by_cost
from suffice.gate.training import LabelledQuestion
from suffice.types import Action

pytestmark = pytest.mark.usefixtures("few_trees")


# ---- checking


def test_a_fitted_gate_tells_complete_from_incomplete() -> None:
    truth = np.array([complete(one) for one in fresh()])
    p = p_of(small_gate(), fresh())
    assert auroc(p, truth) > 0.75
    assert abs(p.mean() - truth.mean()) < 0.08


def test_an_action_out_of_the_usual_order_says_why() -> None:
    """A gate that expands from 0.1 on, if p rises as usual; here it expects more, or less."""
    gate = small_gate()
    assert gate.model.after is not None
    policy = replace(gate.policy, answer_at=0.9, expand_at=0.4)
    given = [(one.question, shown(one)) for one in fresh()[180:240]]
    verdicts = replace(gate, policy=policy).check_batch(given)
    why = [
        [one.words for one in verdict.reasons if one.feature == "search"] for verdict in verdicts
    ]
    usual = [verdict for verdict, words in zip(verdicts, why, strict=True) if not words]
    abstained = [one.p_complete for one in usual if one.action is Action.ABSTAIN]
    expanded = [one.p_complete for one in usual if one.action is Action.EXPAND]
    assert max(abstained) <= min(expanded)  # without the others, actions follow p
    for verdict, words in zip(verdicts, why, strict=True):
        now = f"{verdict.p_complete:.2f} now, about "
        likely = (
            "is likely to find what is missing"
            if verdict.action is Action.EXPAND
            else "is not likely"
        )
        assert all(one.startswith(f"another search {likely}") and now in one for one in words)
    assert any(why)


def test_one_by_one_is_as_good_as_all_at_once() -> None:
    some = fresh()[:12]
    together = small_gate().check_batch(pairs(some), documents=collection()[0])
    alone = [small_gate().check(one.question, one.hits, documents=one.documents) for one in some]
    assert [one.action for one in together] == [one.action for one in alone]
    assert [one.missing for one in together] == [one.missing for one in alone]
    np.testing.assert_allclose(
        [one.p_complete for one in together], [one.p_complete for one in alone], atol=1e-6
    )


def test_a_gate_foresees_hops_from_the_words_of_a_question_alone() -> None:
    some = [one.question for one in fresh()[:20]]
    hops = small_gate().hops([*some, ""])
    assert hops.shape == (21,)
    assert (hops >= 1).all()
    np.testing.assert_allclose(small_gate().hops(some[:1]), hops[:1], atol=1e-6)
    assert small_gate().hops([]).shape == (0,)


def test_without_explanation_the_rest_is_the_same() -> None:
    example = fresh()[1]
    verdict = small_gate().check(example.question, shown(example))
    bare = small_gate().check(example.question, shown(example), explain=False)
    assert bare == replace(verdict, estimate=bare.estimate, reasons=(), missing=(), next_queries=())
    assert bare.p_complete == pytest.approx(verdict.p_complete)


def test_a_gate_that_stops_a_search_is_never_surer_and_keeps_the_order() -> None:
    gate, some = small_gate(), pairs(fresh())
    assert gate.for_expansion() is gate  # without a reader
    stopping = replace(gate, model=replace(gate.model, stop=gate_module._shipped_stop()))
    plain, found = gate.probabilities(some), stopping.probabilities(some)
    assert (found <= plain + 1e-12).all()
    assert (found < plain).any()
    assert (np.argsort(found, kind="stable") == np.argsort(plain, kind="stable")).all()


def test_no_hits_are_hardly_enough() -> None:
    verdict = small_gate().check(fresh()[0].question, [])
    assert verdict.p_complete < 0.001
    assert verdict.reasons[0].words == "there are no hits"
    assert verdict.action is not Action.ANSWER
    assert verdict.next_queries == ()  # there is nothing to add to the question


def test_a_huge_text_costs_no_more_than_its_beginning() -> None:
    example = fresh()[0]
    cut = small_gate().check(example.question, ["The Verge wrote. " * 1_000])
    whole = small_gate().check(example.question, ["The Verge wrote. " * 100_000])
    assert whole.p_complete == cut.p_complete


def test_the_first_needed_document_more_raises_the_mean() -> None:
    documents = collection()[0]
    lacking = [one for one in fresh() if not complete(one)][:80]
    before = p_of(small_gate(), lacking).mean()
    found = [
        documents[sorted(set(one.needed or ()) - {hit.doc_id for hit in one.hits})[0]]
        for one in lacking
    ]
    added = [
        (one.question, [more, *(documents[hit.doc_id] for hit in one.hits)])
        for one, more in zip(lacking, found, strict=True)
    ]
    bare = [(one.question, [documents[hit.doc_id] for hit in one.hits]) for one in lacking]
    assert small_gate().probabilities(added).mean() >= small_gate().probabilities(bare).mean()
    assert before < 0.5


# ---- fitting


def test_a_promise_can_be_asked_for_and_refused() -> None:
    gate = Gate.fit(labelled()[:120], seed=3, alpha=0.01, preset="fast")
    assert gate.policy.promise is not None
    assert gate.policy.answer_at is None  # two dozen questions cannot bear that out
    kept = gate.policy.promise.questions
    assert gate.card["questions"] == {"fit": 120 - kept, "promise": kept}
    assert kept == pytest.approx(24, abs=2)


def test_without_a_promise_every_question_is_learned_from() -> None:
    assert small_gate().card["questions"] == {"fit": FITTED, "promise": 0}
    assert len(small_gate().model.base.log_odds_at_fit) == FITTED


def test_probabilities_are_calibrated_on_what_models_said_of_questions_they_had_not_seen() -> None:
    gate, truth = small_gate(), np.array([complete(one) for one in labelled()[:FITTED]])
    unseen, seen = (
        gate.model.calibration.apply(gate.model.base.log_odds_at_fit),
        p_of(gate, labelled()[:FITTED]),
    )
    assert unseen.mean() == pytest.approx(truth.mean(), abs=0.01)
    assert (
        log_loss(seen, truth) < log_loss(unseen, truth) - 0.02
    )  # what it was fitted on looks easier than it is


# ---- expanding


def acted(costs: Costs, rounds_left: int = 1) -> list[Action]:
    """What the small gate does with the fresh questions at such costs."""
    gate, truth = small_gate(), np.array([complete(one) for one in labelled()[:FITTED]])
    policy = choose_by_cost(
        gate.model.calibration.apply(gate.model.base.log_odds_at_fit), truth, costs=costs
    )
    checked = replace(gate, policy=policy).check_batch(
        pairs(fresh()), documents=collection()[0], explain=False, rounds_left=rounds_left
    )
    return [one.action for one in checked]


def test_expansions_are_chosen_where_one_more_round_tends_to_help() -> None:
    actions = np.array(acted(Costs(wrong=1, expand=0.02, abstain=0.4)))
    helped = np.array(
        [not complete(one) and complete(replace(one, hits=one.hits_after or ())) for one in fresh()]
    )
    expanded, abstained = actions == Action.EXPAND, actions == Action.ABSTAIN
    assert (helped & expanded).any()
    assert helped[expanded].mean() > helped[abstained].mean()


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "0 labelled examples"),
        ([("question", [], [])] * 80, "example 1 is of type tuple"),
        ([LabelledQuestion("question", [], "doc-1")] * 80, "needed is 'doc-1'"),
        ([LabelledQuestion(f"question {at}", [], {"a"}) for at in range(80)], "is incomplete"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    examples: list[LabelledQuestion], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Gate.fit(examples)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"policy": "luck"}, "policy is 'luck'"), ({"policy": "risk"}, "needs alpha")],
)
def test_an_unknown_policy_is_refused_before_the_work(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Gate.fit([], **options)  # type: ignore[arg-type]


# ---- keeping


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    small_gate().save(tmp_path / "gate")
    return tmp_path / "gate"


def test_a_gate_comes_back_as_it_went(saved: Path) -> None:
    again = Gate.load(saved)
    np.testing.assert_allclose(
        p_of(again, fresh()[:60]), p_of(small_gate(), fresh()[:60]), atol=1e-5
    )
    assert (again.policy, again.profile, again.model.after) == (
        small_gate().policy,
        small_gate().profile,
        small_gate().model.after,
    )
    before, after = (
        gate.check(fresh()[0].question, shown(fresh()[0])) for gate in (small_gate(), again)
    )
    assert (before.missing, before.next_queries, before.action) == (
        after.missing,
        after.next_queries,
        after.action,
    )
    again.save(saved)
    assert Gate.load(saved).policy == again.policy


def test_a_gate_never_replaces_a_folder_of_documents(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="is not a gate"):
        small_gate().save(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


def test_the_manifest_tells_what_made_the_gate(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["seed"] == 7
    assert manifest["settings"]["metrics"]["auroc"] > 0.7
    assert len(manifest["inputs"]["examples"]) == 64
    assert not [name for name in manifest["files"] if name.endswith((".pkl", ".pickle", ".joblib"))]


def test_a_damaged_gate_is_refused(saved: Path) -> None:
    (saved / "policy.json").write_text((saved / "policy.json").read_text().replace("f1", "f2"))
    with pytest.raises(DataError, match=r"policy\.json is missing or altered") as caught:
        Gate.load(saved)
    assert "suffice fit" in caught.value.hint


def test_a_gate_with_other_features_is_refused(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    with monkeypatch.context() as other:
        other.setattr(model_module, "HIT_COLUMNS", ("something", "else"))
        with pytest.raises(NotReadyError, match="other columns"):
            Gate.load(saved)
    manifest["settings"]["encoder"] = "letters"  # of an earlier version
    (saved / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(NotReadyError, match="fitted with an encoder, which is gone") as caught:
        Gate.load(saved)
    assert "suffice fit" in caught.value.hint


def test_a_newer_gate_is_refused(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    (saved / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(NotReadyError, match="newer than the one"):
        Gate.load(saved)


def test_what_is_no_gate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="is not a gate"):
        Gate.load(tmp_path)
    for preset in ("best", None):
        with pytest.raises(InputError, match=f"no preset is named {preset!r}"):
            Gate.load(preset=preset)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is not a gate") as caught:
        Gate.load("fast")
    assert "Gate.load(preset='fast')" in caught.value.hint


def test_a_shipped_gate_may_be_named_by_its_preset() -> None:
    assert repr(open_gate("fast")) == "<suffice.Gate, preset 'fast', k 10>"
    assert GateRef.named("fast") == GateRef.named("default", "fast")
    assert GateRef.named("fast", "fast").open().preset == "fast"


def test_what_is_no_pair_is_refused() -> None:
    with pytest.raises(InputError, match="expected \\(question, hits\\)"):
        small_gate().check_batch([("only a question",)])  # type: ignore[list-item]


# ---- entry points


TRACE = """
import sys
from pathlib import Path
import suffice
from suffice.gate.gate import Gate

files, home = set(), str(Path(suffice.__file__).parent)

def note(frame, event, argument):
    code, above = frame.f_code, frame.f_back
    while above is not None and "importlib" not in above.f_code.co_filename:
        above = above.f_back
    if above is None and code.co_filename.startswith(home) and code.co_name != "<module>":
        files.add(code.co_filename)

sys.settrace(note)
Gate.load().check("Who taught the teacher of Ada in 1843?", [{"title": "Ada", "text": "Ada was taught by Mary."}])
sys.settrace(None)
print(len(files), len(sys.modules), *{"scipy", "sklearn", "onnx"} & sys.modules.keys())
"""


def test_loading_and_checking_run_through_few_files_and_no_scikit_learn() -> None:
    done = subprocess.run([sys.executable, "-c", TRACE], capture_output=True, text=True, check=True)
    files, modules, *heavy = done.stdout.split()
    assert int(files) <= 16
    assert int(modules) <= 320
    assert heavy == []


@pytest.mark.parametrize("wrong", [None, 3])
def test_examples_are_a_list(wrong: Any) -> None:
    for learn in (Gate.fit, Gate.load(preset="fast").adapt):
        with pytest.raises(InputError, match="expected a list") as caught:
            learn(wrong)
        assert "LabelledQuestion" in caught.value.hint


def test_a_gate_is_loaded_from_a_path() -> None:
    with pytest.raises(InputError, match="expected a path") as caught:
        Gate.load(3)  # type: ignore[arg-type]
    assert "shipped" in caught.value.hint
