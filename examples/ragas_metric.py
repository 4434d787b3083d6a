"""ragas: is what was retrieved enough? A metric without a language model, and rows that become a
gate of your own.

pip install 'suffice[ragas]'
"""

import json
import tempfile
from pathlib import Path

from ragas import EvaluationDataset, evaluate

from suffice import datasets
from suffice.integrations.ragas import EvidenceCompleteness

QUESTION = "Where was the director of the film Metropolis born?"
FILM = "Metropolis is a 1927 German film directed by Fritz Lang."
WRONG = "Superman lives in the city of Metropolis and works for a newspaper."
DIRECTOR = "Fritz Lang was a film director, born in Vienna in 1890."
ROWS = [
    {
        "user_input": QUESTION,
        "retrieved_contexts": [FILM, WRONG],
        "reference_contexts": [FILM, DIRECTOR],
    },
    {
        "user_input": QUESTION,
        "retrieved_contexts": [FILM, DIRECTOR],
        "reference_contexts": [FILM, DIRECTOR],
    },
]

result = evaluate(
    EvaluationDataset.from_list(ROWS), metrics=[EvidenceCompleteness()], show_progress=False
)
print([round(score, 2) for score in result["evidence_completeness"]])

with (
    tempfile.TemporaryDirectory() as folder
):  # as a data set: suffice fit --dataset ragas --path rows.jsonl --out gate
    path = Path(folder) / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    for example in datasets.load("ragas", path).questions():
        held = {hit.doc_id for hit in example.hits}
        print(
            example.question.question_id,
            "complete" if example.gold.doc_ids <= held else "incomplete",
        )
