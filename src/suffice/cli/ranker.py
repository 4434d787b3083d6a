"""`suffice fit --bridge`: a ranker of the bridge retriever from one's own labelled questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suffice.cli.manners import print_json, progress_bar, say, say_left_out


def fit_ranker(dataset: Any, out: Path, *, encoder: str, k: int, limit: int | None, seed: int, json: bool) -> None:
    """Fit, save, and say whether it finds more complete sets than the ranker that ships."""
    from suffice.evaluate.own_ranker import own_ranker
    from suffice.evaluate.tables import printed
    from suffice.integrations.onnx import open_encoder

    with progress_bar(quiet=json) as progress:
        made = own_ranker(dataset, open_encoder(encoder), k=k, most=limit, seed=seed, progress=progress)
    card = {"data": dataset.name, "questions": made.questions, "encoder": encoder, f"complete@{k}": made.own.value}
    say_left_out(dataset.bad)
    made.ranker.save(out, card=card, seed=seed)
    if json:
        figures = {"own": made.own.value, "shipped": made.shipped.value}
        print_json({"path": str(out), "questions": made.questions, "k": k, "seed": seed, f"complete@{k}": figures})
        return
    print(f"ranker from {made.questions:,} questions at {out}")
    print(f"complete@{k} by folds: {printed(made.own)}; the ranker that ships: {printed(made.shipped)}")
    if (made.own.value or 0.0) < (made.shipped.value or 0.0):
        say("the ranker that ships finds more: label more questions before you use this one")
    say(f'\nnext: suffice search LIBRARY "your question" --ranker {out}')
