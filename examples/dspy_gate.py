"""DSPy: the gate around a retriever, inside a program. Without enough evidence no language model is
asked.

pip install 'suffice[dspy]'
"""

import dspy

from suffice import ExpansionBudget
from suffice.integrations.dspy import GatedRetrieve

PAGES = [
    "Metropolis (1927 film) | Metropolis is a 1927 German film directed by Fritz Lang.",
    "Superman | Superman lives in the city of Metropolis and works for a newspaper.",
    "Fritz Lang | Fritz Lang was a film director, born in Vienna in 1890.",
    "Leek soup | Leek soup is made of leeks and potatoes.",
]


def search(query: str) -> list[str]:
    """Your retriever, dspy.Retrieve or dspy.retrievers.Embeddings; here the two pages that share
    most words.
    """
    words = set(query.casefold().rstrip("?").split())
    return sorted(PAGES, key=lambda page: -len(words & set(page.casefold().rstrip(".").split())))[
        :2
    ]


class Answer(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        # The line to add; was: search. Yours needs no `min_familiarity`: these pages are far shorter
        # than the texts that the gate was trained on, so that it would hold nothing back.
        self.retrieve = GatedRetrieve(search, budget=ExpansionBudget(), min_familiarity=0)
        self.answer = dspy.Predict("context, question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        found = self.retrieve(question)
        if found.action != "answer":
            return dspy.Prediction(answer=f"not found: {', '.join(found.missing)}")
        return self.answer(context=found.passages, question=question)


dspy.configure(lm=dspy.utils.DummyLM([{"answer": "Vienna"}]))  # yours
program = Answer()
for question in (
    "Where was the director of the film Metropolis born?",
    "Who taught the teacher of Ada Lovelace?",
):
    print(question, "->", program(question).answer)
