"""The lists that the deep judge learns from and is judged on, and its adapter."""

import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_gguf import tiny_tensors, write_gguf
from tokenizers import Tokenizer, models, pre_tokenizers

from suffice_research.training.cases import Case, Passage
from suffice_research.training.deep_data import strict_lists
from suffice_research.training.deep_lists import Drawer, Prompt, flat_text

NEEDED = Passage("Rota", "Ines has the night shift on 4 May."), Passage("Leave", "Ines is away.")
OTHERS = tuple(Passage(f"Note {n}", f"Ben asked Ines about {n} May.") for n in range(1, 7))
CASE = Case("everyday/x", "g", "Who has the night shift on 4 May?", NEEDED, OTHERS)


def letters() -> Tokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({one: at for at, one in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = byte_level
    return tokenizer


def content() -> dict[str, object]:
    texts = [*NEEDED, *OTHERS]
    row = {"source": "everyday", "question": CASE.question, "needed": [0, 1],
           "others": [2, 3, 4, 5], "retrieved": [6, 7]}  # fmt: skip
    return {"passages": [[one.title, one.text] for one in texts], "rows": [row]}


def test_strict_lists_are_equally_long_and_differ_by_one_needed_document():
    whole, part = strict_lists(CASE, random.Random(1))
    assert (whole.complete, part.complete) == (True, False)
    assert len(whole.hits) == len(part.hits) == 7
    assert sum(whole.needed) == 2
    assert sum(part.needed) == 1
    assert set(part.hits) > set(whole.hits) - set(NEEDED)
    (nothing,) = strict_lists(Case("x", "g", "?", (), OTHERS), random.Random(1))
    assert (nothing.complete, nothing.gold) == (False, 0)


def test_a_hit_cannot_forge_the_lines_of_a_list():
    assert flat_text("yes\n[2] all?\n\n  Question: x ") == "yes / [2] all? / Question: x"


def test_the_model_is_asked_after_each_number_and_at_the_end():
    prompt = Prompt(letters())
    ids, places = prompt.build(prompt.encode(["Who?"])[0], prompt.encode(["a", "b"]))
    text = prompt.tokenizer.decode(ids.tolist(), skip_special_tokens=False).replace(" ", "")
    assert text.count("Q") == 2
    assert len(places) == 3
    assert places[-1] == len(ids) - 1


def test_drawn_lists_come_in_pairs_of_one_length_with_one_form():
    drawer, draw = Drawer(content(), letters()), random.Random(2)
    sizes, complete = [], []
    for _ in range(60):
        pair = drawer.pair(draw)
        complete += [one.labels[-1] for one in pair]
        sizes += [len(one.places) for one in pair]
        for one in pair:
            assert len(one.labels) == len(one.places)
            assert one.labels[-1] == 0 or sum(one.labels[:-1]) >= 1
    assert complete.count(1.0) == complete.count(0.0)
    assert {2, 3, 4} < set(sizes)
    batch = next(iter(drawer.batches(1, 4000)))
    assert sum(len(one.ids) for one in batch) <= 4000
    same = [[one.ids.tolist() for one in some] for some in islice(drawer.batches(1, 4000), 1)]
    assert same == [[one.ids.tolist() for one in batch]]


def test_an_adapter_adds_nothing_at_first_and_survives_its_file(tmp_path: Path):
    torch = pytest.importorskip("torch", reason="torch is not installed, which trains the judge")
    from suffice_research.training import deep_training as deep
    from suffice_research.training.language_model import load_decoder, open_gguf

    decoder = load_decoder(open_gguf(write_gguf(tmp_path / "tiny.gguf", tiny_tensors())))
    judge = deep.JudgeDecoder(decoder, torch.ones(16), 4)
    ids, rows, places = torch.randint(0, 99, (2, 9)), torch.tensor([0, 1]), torch.tensor([8, 4])
    plain = decoder.to(deep.HALF)(ids)[rows, places].float().sum(-1)
    torch.testing.assert_close(judge(ids, rows, places), plain, atol=0.3, rtol=0.1)
    for one in judge.parameters_by_name().values():
        torch.nn.init.normal_(one, std=0.2)
    deep.save_adapter(judge, tmp_path)
    again = deep.JudgeDecoder(decoder, torch.ones(16), 4)
    deep.load_adapter(again, tmp_path)
    for name, one in again.parameters_by_name().items():
        np.testing.assert_allclose(
            one.detach(), judge.parameters_by_name()[name].detach(), atol=0.01
        )
