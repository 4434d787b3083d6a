"""Run the study's slow models on another machine: write a language model's requests to a file, and
read its answers and the cross-encoder's scores into a cache.

    python -m suffice_research.multi_meta_rag.requests --data DIR --out requests
    python -m suffice_research.multi_meta_rag.requests --data DIR --cache DIR --model NAME \
        --answers extractor.answers.jsonl mmr-answers.answers.jsonl --scores scores.npz

The first writes `extractor.prompts.jsonl` and `mmr-answers.prompts.jsonl`: a line for each request,
{"key", "messages", "max_tokens"}. The second reads lines of {"key", "text"} and the cross-encoder's
scores, and stores them where `suffice reproduce multi-meta-rag --cache DIR` looks for them. Later
lines win. `--keep FILE` also writes the answers with a hash of their prompts; such an answer is
used only if its prompt is unchanged. `--keep-scores FILE` writes the scores in the cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.errors import InputError, ModelError, SufficeError
from suffice.integrations.openai import CachedModel
from suffice.registry import ENCODERS
from suffice.retrieval.builtin import DEFAULT_RERANKER
from suffice.retrieval.corpus import searchable_text
from suffice.storage import BadRecords, read_json_records, write_atomically
from suffice_research.embedding_cache import CachedReranker
from suffice_research.multi_meta_rag.answering import answer_prompt
from suffice_research.multi_meta_rag.fact_recall import FactIndex
from suffice_research.multi_meta_rag.pair_scores import load_scores, scores_in_cache
from suffice_research.multi_meta_rag.study import (
    ANSWERED,
    ENCODER_NAMES,
    EXTRACTED,
    MAX_CHARS,
    SEED,
    answer_contexts,
    draw_sample,
    model_extractor,
    read_data,
)
from suffice_research.multi_meta_rag.systems import FilterBench

__all__ = ["Request", "all_requests", "read_answers", "store_answers", "store_scores"]

MAX_TOKENS = 256  # as for the command line's model
FILES = {"extractor": "extractor.prompts.jsonl", "answers": "mmr-answers.prompts.jsonl"}


@dataclass(frozen=True, slots=True)
class Request:
    key: str
    prompt: str
    schema: Mapping[str, Any] | None = None

    @property
    def digest(self) -> str:
        text = json.dumps([self.prompt, self.schema], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]

    def line(self) -> str:
        messages = [{"role": "user", "content": self.prompt}]
        record = {"key": self.key, "messages": messages, "max_tokens": MAX_TOKENS}
        return json.dumps(record, ensure_ascii=False) + "\n"


class _Nobody:
    """A stand-in for a model while prompts are written and scores are moved."""

    def __init__(self, name: str = "nobody") -> None:
        self.name = name

    def complete(self, prompts: Sequence[str], *, schema: object = None) -> list[str]:
        raise ModelError("nobody is asked while requests are written")

    def score(self, question: str, texts: Sequence[str]) -> Any:
        raise ModelError("nobody reads while scores are moved")


def all_requests(
    data: Path, *, seed: int = SEED, max_chars: int = MAX_CHARS
) -> dict[str, list[Request]]:
    """The requests of the study by file, for the sample that it draws."""
    held = read_data(data)
    facts = FactIndex([], [()] * len(held.answerable))
    bench = FilterBench(ENCODERS.get(ENCODER_NAMES[0])(), held.chunks, held.answerable, facts)
    extractor = model_extractor(_Nobody(), bench.vocabulary)
    extraction = [
        Request(
            f"extract/{one.question.question_id}",
            extractor.prompt(one.question.text),
            extractor.schema,
        )
        for one in draw_sample(held, EXTRACTED, seed)
    ]
    asked = draw_sample(held, ANSWERED, seed)
    answers = [
        Request(
            f"answer/{system}/{one.question.question_id}",
            answer_prompt(one.question.text, shown, max_chars=max_chars),
        )
        for system, chunks in answer_contexts(bench, held, asked).items()
        for one, shown in zip(asked, chunks, strict=True)
    ]
    return {"extractor": extraction, "answers": answers}


class _Answered:
    """A model whose answers are already known."""

    def __init__(self, name: str, answers: Mapping[str, str]) -> None:
        self.name, self._answers = name, answers

    def complete(self, prompts: Sequence[str], *, schema: object = None) -> list[str]:
        return [self._answers[one] for one in prompts]


def read_answers(requests: Sequence[Request], files: Sequence[Path]) -> dict[str, str]:
    """The answers in these files by key, without those to another prompt."""
    digests = {one.key: one.digest for one in requests}
    said: dict[str, str] = {}
    for path in files:
        for record in read_json_records(path, BadRecords()):
            key, text = record.value.get("key"), record.value.get("text")
            if not isinstance(key, str) or not isinstance(text, str):
                raise InputError(
                    f"{record.where}: expected a key and a text",
                    hint='a line looks like {"key": "extract/q0", "text": "{}"}',
                )
            if key in digests and record.value.get("prompt", digests[key]) == digests[key]:
                said[key] = text
    if not said:
        raise InputError(
            "no line has a key of the study's requests, with the same prompt",
            hint="write the requests again with --out, answer them, and keep their keys",
        )
    return said


def store_answers(
    requests: Sequence[Request], said: Mapping[str, str], *, model: str, cache: Path
) -> None:
    """Store the answers in the cache of the study's model."""
    for one in requests:
        if one.key in said:
            known = _Answered(model, {one.prompt: said[one.key]})
            store = CachedModel(known, Path(cache) / "answers.db")
            store.forget([one.prompt], schema=one.schema)
            store.complete([one.prompt], schema=one.schema)


def store_scores(data: Path, cache: Path, *, take: Path | None, keep: Path | None) -> Iterator[str]:
    """Read the cross-encoder's scores from a file into the cache, write those in the cache to a
    file, or both; yields what was done.
    """
    held = read_data(data)
    questions = [one.question.text for one in held.answerable]
    texts = [searchable_text(one) for one in held.chunks]
    cached = CachedReranker(_Nobody(DEFAULT_RERANKER), cache)
    if take is not None:
        stored = load_scores(take)
        if stored.reranker != cached.name:
            raise InputError(
                f"{take} has scores of {stored.reranker}, and the study's cross-encoder is {cached.name}",
                hint="leave --scores out",
            )
        pairs = stored.pairs(questions, texts)
        cached.take(pairs)
        yield f"stored {len(pairs):,} scores, made on {stored.made_on}"
    if keep is not None:
        found = scores_in_cache(cached, questions, texts, made_on=platform.machine())
        found.save(keep)
        yield f"wrote {len(found):,} scores to {keep}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m suffice_research.multi_meta_rag.requests",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of real data")
    parser.add_argument("--out", type=Path, help="write the requests into this folder")
    parser.add_argument("--answers", type=Path, nargs="+", help="files of answers to take in")
    parser.add_argument("--model", help="the name that --model of reproduce will have")
    parser.add_argument("--cache", type=Path, help="the folder that --cache of reproduce will have")
    parser.add_argument("--keep", type=Path, help="write the answers with hashes of their prompts")
    parser.add_argument(
        "--scores", type=Path, help="a file of the cross-encoder's scores to take in"
    )
    parser.add_argument("--keep-scores", type=Path, help="write the cache's scores to this file")
    args = parser.parse_args()
    scores = args.scores or args.keep_scores
    if args.out is None and not args.answers and not scores:
        parser.error("pass --out, --answers, --scores or --keep-scores")
    if (scores or args.answers) and not args.cache:
        parser.error("pass --cache")
    if args.answers and not args.model:
        parser.error("pass --model, the name that the answers are kept under")
    try:
        if scores:
            moved = store_scores(args.data, args.cache, take=args.scores, keep=args.keep_scores)
            print(*moved, sep="\n")
        if args.out is None and not args.answers:
            return 0
        requests = all_requests(args.data)
        if args.out is not None:
            for name, file in FILES.items():
                args.out.mkdir(parents=True, exist_ok=True)
                write_atomically(args.out / file, "".join(one.line() for one in requests[name]))
                print(f"wrote {len(requests[name])} requests to {args.out / file}")
        if args.answers:
            every = [one for some in requests.values() for one in some]
            said = read_answers(every, args.answers)
            store_answers(every, said, model=args.model, cache=args.cache)
            print(f"stored {len(said)} answers; {len(every) - len(said)} requests have none")
            if args.keep:
                kept = (
                    {"key": one.key, "prompt": one.digest, "text": said[one.key]}
                    for one in every
                    if one.key in said
                )
                lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in kept)
                write_atomically(args.keep, "".join(lines))
    except SufficeError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
