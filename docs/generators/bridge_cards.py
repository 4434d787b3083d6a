"""The cards of the bridge's two models: from their manifests, the studies, and what must be known before using them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.generators.bridge import COMMANDS, studies
from docs.generators.paths import DOCS
from suffice.evaluation.study import Study
from suffice.evaluation.tables import Table
from suffice.retrieval.bridge import SHIPPED
from suffice.storage import MANIFEST
from suffice_research.training.sources import SOURCES

LICENCES = {one.name: one.licence for one in SOURCES}
SCORER = SHIPPED.parent / "bridge-scorer"


def pages() -> dict[Path, str]:
    found = studies()
    made = {"fast": ("bridge-fast", ranker_card), "quality": ("bridge-scorer", scorer_card)}
    return {
        DOCS / "models" / f"{name}.md": card(found[preset])
        for preset, (name, card) in made.items()
        if preset in found
    }


def ranker_card(study: Study) -> str:
    """docs/models/bridge-fast.md"""
    manifest = _manifest(SHIPPED)
    learned = manifest["settings"]["questions"]
    return f"""# Model card: the ranker of the bridge retriever, preset `fast`

Says how probable it is that a candidate is needed next, from the question, the documents held and the candidate: words, static
embeddings, names and links. Boosted trees as ONNX in `models/bridge-fast` ({_size(SHIPPED)}), one thread, no network.

    {COMMANDS["fast"]}

makes it from data and seed {manifest["seed"]}, byte for byte. One from your own questions: [how to](../howto/expand.md).

## Data

{_data(learned)}
{_files(study)}
## Figures

By folds over all questions, with the data set left out, and with weights that were set by hand. [All of them, beside
others](../results/bridge.md).

{study.table("Bridge").to_markdown()}
{study.table("News").to_markdown()}
## Limits

- English; Wikipedia passages and news. Names are found by capital letters: a script without them has words and vectors only.
- Titles that are common nouns are followed only where they are written as names.
- On a corpus where metadata says more than names do, one that was not fitted there is below hybrid-metagraph: fit your own.
- It says what is worth reading next, not whether a text is true; who writes a document can write names into it.
"""


def scorer_card(study: Study) -> str:
    """docs/models/bridge-scorer.md"""
    manifest = _manifest(SCORER)
    learned = {str(row[0]): row[1] for row in study.table("Bridge").rows}
    return f"""# Model card: the set scorer of the bridge retriever, preset `quality`

Reads a question, one sentence of each document held, and a candidate; says how probable it is that the candidate is needed
next. In `models/bridge-scorer` ({_size(SCORER)}): `model.onnx` (BERT of 6 layers, 384 wide, int8), `tokenizer.json`,
`reader.onnx` (boosted trees that weigh what was read with the bridge's features). No network. Used by `bridge(store,
preset="quality")`.

    python -m suffice_research.training.scorer_study --data $DATA --vectors VECTORS --base BASE.onnx --tokenizer TOKENIZER.json --out DIR
    python -m suffice_research.training.scorer_export DIR/weights.npz --base BASE.onnx --tokenizer TOKENIZER.json --reader DIR/reader.onnx

makes one like it on a GPU, not the same bytes (why: [decision 18](../decisions/0018-set-scorer.md)). Base:
{manifest["settings"]["base"]} (Apache-2.0), every second layer, which first learned from the twelve layers' opinion of
sentences and passages of the same corpora, without labels.

## Data

{_data(learned)}
{_files(study)}
## Figures

Five documents, scorer and reader fitted on the other folds, and without the whole data set; in half precision on a GPU, while
int8 ships; reading 16 candidates at first and 6 in every round, while the default reads 20, then 5, 3, 2, 2. [Beside
others](../results/bridge.md); how honest they are: [decision 18](../decisions/0018-set-scorer.md).

{study.table("Bridge").to_markdown()}
## Limits

- English; Wikipedia passages. News and chat were not among the lessons.
- A passage whose needed sentence is not among the 100 tokens that are shown is judged without it.
- Unlike questions cost: see the columns *left out*.
- It says what is worth reading next, not whether a text is true; who writes a document writes what it reads.
"""


def _manifest(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return read


def _data(learned: Mapping[str, object]) -> str:
    rows = tuple((name, LICENCES[name], questions) for name, questions in learned.items())
    return Table("Data", ("data set", "licence", "questions"), rows).to_markdown()  # type: ignore[arg-type]


def _files(study: Study) -> str:
    return "Files, with their sha256:\n\n" + "".join(
        f"- `{name}` {digest}\n" for name, digest in sorted(study.data.items())
    )


def _size(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.iterdir()) / 1e6:.1f} MB"
