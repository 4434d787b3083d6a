"""A teacher for the reader, on a GPU: `python -m suffice_research.training.reader_teacher --help`.

The teacher is the language model of `asked_model`, tuned on the lists that the reader is trained
on. Then it reads further lists of the same cases and of cases without labels (`written_cases`), and
says for each hit how likely it is needed, and for each list how likely it is complete.
`reader_training --taught` mixes that with the labels.
The teacher is seventy times as large as the reader and knows far more language to begin with.

It reads the text as the reader does, in lower case. The question comes before the hits and after
them: each token sees only those before it.

With `--lists` it also reads the lists that `gate_baselines --write-lists` wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.utils.data import DataLoader, IterableDataset

from suffice_research.training.asked_data import Document
from suffice_research.training.asked_model import (
    DEVICE,
    AskingModel,
    Example,
    Tuning,
    document_text,
    half_precision,
    judging_ids,
    load_model,
    padded,
    similar_length,
    tune,
)
from suffice_research.training.language_model import open_gguf
from suffice_research.training.reader_lists import WEIGHTS, HitList, Pack, draw_lists, hit_tokens
from suffice_research.training.reader_training import (
    JUDGED,
    LEARN,
    judge,
    pools_of,
    show,
    taught_weights,
)

WINDOWS = 128  # per step: as many hits, or a little more
TUNED_SEED, TAUGHT_SEED = 1, 2
TOGETHER = 48  # steps whose lists are read together, sorted by length
READ_TOKENS = 60_000  # per batch when reading
HIT_TOKENS = 768  # of a hit in given lists: the reader reads no more of most


class _Texts:
    """Lists as texts for the language model."""

    def __init__(self, pack: Pack, words: Tokenizer, tokenizer: Tokenizer) -> None:
        self.pack, self.words, self.tokenizer = pack, words, tokenizer
        words.no_truncation()
        words.no_padding()

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)

    def example(self, listed: HitList) -> Example:
        question = self._text(listed.question.tolist())
        docs = [Document(*map(self._text, hit_tokens(self.pack, one))) for one in listed.hits]
        head = self.ids(f"Question: {question}\n{document_text(docs)}")
        ids, places = judging_ids(self.ids, question, len(docs))
        labels = (*(float(one.needed) for one in listed.hits), float(listed.complete))
        return Example([*head, *ids], 0, tuple(len(head) + at for at in places), labels)

    def unlabelled(self, question: str, hits: Sequence[tuple[str, str]]) -> Example:
        docs = [Document(self._lowered(title), self._lowered(text)) for title, text in hits]
        asked = self._lowered(question)
        head = self.ids(f"Question: {asked}\n{document_text(docs)}")
        ids, places = judging_ids(self.ids, asked, len(docs))
        return Example([*head, *ids], 0, tuple(len(head) + at for at in places))

    def _text(self, ids: Sequence[int]) -> str:
        return str(self.words.decode(list(ids)))

    def _lowered(self, text: str) -> str:
        return self._text(self.words.encode(text, add_special_tokens=False).ids[:HIT_TOKENS])


class _Steps(IterableDataset):  # type: ignore[misc]
    """The examples of each step, in order."""

    def __init__(self, texts: _Texts, seed: int, steps: int) -> None:
        self.texts, self.seed, self.steps = texts, seed, steps
        self.pools = pools_of(texts.pack)

    def __iter__(self) -> Iterator[list[Example]]:
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        for step in range(worker, self.steps, workers):
            draw = np.random.default_rng([self.seed, step])
            weights = taught_weights(self.pools, step) if self.seed == TAUGHT_SEED else WEIGHTS
            lists = draw_lists(self.texts.pack, self.pools, WINDOWS, draw, weights)
            yield [self.texts.example(one) for one in lists]


def _loader(texts: _Texts, seed: int, workers: int, steps: int = 10**9) -> Iterator[list[Example]]:
    options: dict[str, Any] = {"prefetch_factor": 16} if workers else {}
    return iter(
        DataLoader(_Steps(texts, seed, steps), batch_size=None, num_workers=workers, **options)
    )


@torch.inference_mode()  # type: ignore[untyped-decorator]
def read(model: AskingModel, examples: Sequence[Example]) -> list[np.ndarray]:
    """The probabilities at the places of each example."""
    found: list[np.ndarray] = [np.zeros(0)] * len(examples)
    order = sorted(range(len(examples)), key=lambda at: len(examples[at].ids))
    while order:
        many = max(1, READ_TOKENS // len(examples[order[-1]].ids))
        some, order = order[-many:], order[:-many]
        with half_precision():
            hidden = model.decoder(padded([examples[at].ids for at in some], model.end))
        rows = [row for row, at in enumerate(some) for _ in examples[at].places]
        places = [one for at in some for one in examples[at].places]
        p = model.probabilities(hidden[rows, places])
        ends = np.cumsum([len(examples[at].places) for at in some])[:-1]
        for at, one in zip(some, np.split(p, ends), strict=True):
            found[at] = one
    return found


def teach(
    model: AskingModel, texts: _Texts, seconds: float, workers: int, steps: int = 10**9
) -> dict[str, Any]:
    """What the model says of drawn lists, as many as it can read in this time."""
    started = time.monotonic()
    lists: list[int] = []
    sizes: list[int] = []
    said: list[np.ndarray] = []
    loader = _loader(texts, TAUGHT_SEED, workers, steps)
    while time.monotonic() - started < seconds:
        some = [one for _, one in zip(range(TOGETHER), loader, strict=False)]
        if not some:
            break
        lists += map(len, some)
        found = read(model, [one for step in some for one in step])
        sizes += map(len, found)
        said += found
    p = np.concatenate(said).astype(np.float16)
    return {"seed": TAUGHT_SEED, "windows": WINDOWS, "lists": lists, "sizes": sizes, "p": p}


def read_lists(model: AskingModel, texts: _Texts, path: Path, out: Path) -> None:
    """Write the probabilities that each hit is needed, and at last that the list is complete."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    said = read(model, [texts.unlabelled(row["question"], row["hits"]) for row in rows])
    lines = (
        json.dumps({"key": row["key"], "p": p.astype(float).round(4).tolist()})
        for row, p in zip(rows, said, strict=True)
    )
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--model", type=Path, required=True, help="GGUF, Qwen2.5 1.5B")
    parser.add_argument("--tokenizer", type=Path, required=True, help="the reader's")
    parser.add_argument("--seconds", type=float, default=450, help="of tuning")
    parser.add_argument("--reading", type=float, default=240, help="seconds of reading lists")
    parser.add_argument("--rate", type=float, default=1.5e-5)
    parser.add_argument("--tokens", type=int, default=14_000, help="per batch")
    parser.add_argument("--longest", type=int, default=1400, help="tokens per list")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--most", type=int, default=60, help="cases per source for figures")
    parser.add_argument("--lists", type=Path, help="further lists to read, as JSON Lines")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    args = parser.parse_args(arguments)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(False)  # it re-initializes for every shape
    try:
        pack, model = Pack(args.pack), load_model(open_gguf(args.model))
    except ValueError as error:
        parser.error(str(error))
    texts = _Texts(pack, Tokenizer.from_file(str(args.tokenizer)), model.tokenizer)
    tuning = Tuning(args.seconds, args.rate, 0.0, 0, args.tokens, args.longest)
    drawn = (one for step in _loader(texts, TUNED_SEED, args.workers) for one in step)
    tune(model, similar_length(drawn, tuning), tuning)
    if DEVICE == "cuda":
        model.decoder.to(torch.bfloat16)

    def judged(
        lists: Sequence[HitList], _: np.random.Generator
    ) -> tuple[list[float], list[tuple[float, int]]]:
        found = read(model, [texts.example(one) for one in lists])
        odds = [np.log((one + 1e-6) / (1 - one + 1e-6)) for one in found]
        hits = [
            (float(logit), int(hit.needed))
            for one, listed in zip(odds, lists, strict=True)
            for logit, hit in zip(one, listed.hits, strict=False)
        ]
        return [float(one[-1]) for one in odds], hits

    figures: dict[str, object] = {}
    for part, name in JUDGED:
        if part != LEARN:
            found = judge(judged, pack, part, most=args.most)
            print(name)
            show(found)
            figures[name] = found
    (args.out / "teacher.json").write_text(json.dumps(figures))
    if args.lists:
        read_lists(model, texts, args.lists, args.out / "read.jsonl")
    if args.reading:
        np.savez(args.out / "taught.npz", **teach(model, texts, args.reading, args.workers))


if __name__ == "__main__":
    main()
