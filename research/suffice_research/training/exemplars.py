"""Make the shipped bank of plans: `python -m
suffice_research.training.exemplars DATA`.

DATA has musique/ and 2wikimultihopqa/ as published. MuSiQue's annotators wrote sub-questions (or a
relation: "X >> employer"), 2WikiMultiHopQA has chains of facts; both become plain questions with
"#1" for earlier answers. Only questions and their parts are used: no answer, no passage. A few for
each number of hops and each kind are enough to show the form, and a hash chooses them, not a
person.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from suffice.answering.planner import SHIPPED_PLANS, Exemplar, ExemplarBank
from suffice.errors import InputError
from suffice.storage import write_atomically

__all__ = ["from_2wiki", "from_musique", "make"]

EACH = 24  # exemplars per kind, number of hops and source
_KINDS = {
    "compositional": "bridge",
    "inference": "bridge",
    "comparison": "comparison",
    "bridge_comparison": "comparison",
}
_RELATIONS = {
    "date of birth": "When was {} born?", "date of death": "When did {} die?", "place of birth": "Where was {} born?",
    "place of death": "Where did {} die?", "publication date": "When was {} released?", "country": "Which country is {} in?",
    "country of citizenship": ("What is the nationality of " "{}?"), "country of origin": "Which country is {} from?",
    "place of burial": "Where was {} buried?", "educated at": "Where did {} study?", "employer": "Who employed {}?",
    "cause of death": "Of what did {} die?", "award received": "Which award did {} receive?",
    "inception": "When was {} founded?",
    "place of detention": "Where was {} held prisoner?", "occupation": ("What is the occupation of " "{}?"),
    "headquarters location": ("Where are the headquarters of " "{}?"), "record label": ("Which record label is {} " "with?"),
    "located in the administrative territorial entity": "In which administrative entity is {}?",
}  # fmt: skip


def question_of(relation: str, subject: str) -> str:
    """A relation as a question: "director" of X is "Who is the director of X?"."""
    known = _RELATIONS.get(relation)
    if known is not None:
        return known.format(subject)
    who = (
        "Who"
        if relation.endswith(("er", "or", "mother", "father", "spouse", "child", "sibling", "ist"))
        else "What"
    )
    return f"{who} is the {relation} of {subject}?"


def from_musique(records: Sequence[Mapping[str, Any]]) -> Iterator[Exemplar]:
    """MuSiQue's decompositions; a relation after ">>" becomes a question."""
    for record in records:
        steps = []
        for part in record["question_decomposition"]:
            subject, arrow, relation = part["question"].partition(" >> ")
            text = (
                question_of(relation.strip(), subject.strip())
                if arrow
                else " ".join(part["question"].split())
            )
            steps.append(text if text.endswith("?") else text + "?")
        yield Exemplar(record["question"], tuple(steps), "bridge", len(steps), "MuSiQue")


def from_2wiki(records: Sequence[Mapping[str, Any]]) -> Iterator[Exemplar]:
    """2Wiki's evidence: one fact per step, "#1" if the subject is an earlier fact's object, and a
    comparison at the end.
    """
    for record in records:
        steps: list[str] = []
        known: dict[str, int] = {}
        for subject, relation, fact in record["evidences"]:
            at = known.get(_plain(subject))
            steps.append(question_of(relation, f"#{at}" if at else subject))
            known.setdefault(_plain(fact), len(steps))
        steps, hops = list(dict.fromkeys(steps)), len(set(steps))
        kind = _KINDS[record["type"]]
        if kind == "comparison":
            ends = [
                at
                for at in range(1, len(steps) + 1)
                if not any(f"#{at} " in f"{one} ".replace("?", " ") for one in steps)
            ]
            steps.append(
                f"{record['question'].rstrip('? ')}, knowing "
                + " and ".join(f"#{at}" for at in ends)
                + "?"
            )
        yield Exemplar(record["question"], tuple(steps), kind, hops, "2WikiMultiHopQA")


def _plain(name: str) -> str:
    return name.split(" (")[0].casefold()


def make(data: Path, path: Path = SHIPPED_PLANS) -> ExemplarBank:
    """Choose, check and write; skip exemplars whose steps are not a valid plan."""
    musique = json.loads((data / "musique" / "musique.json").read_text(encoding="utf-8"))
    wiki = json.loads(
        (data / "2wikimultihopqa" / "2wikimultihopqa.json").read_text(encoding="utf-8")
    )
    groups: dict[tuple[str, str, int], list[Exemplar]] = defaultdict(list)
    every = [*from_musique(musique), *from_2wiki(wiki)]
    for one in sorted(every, key=lambda one: sha256(one.question.encode()).hexdigest()):
        group = groups[(one.source, one.kind, one.hops)]
        if len(group) < EACH and _is_plan(one):
            group.append(one)
    chosen = [one for key in sorted(groups) for one in groups[key]]
    lines = [
        {
            "question": one.question,
            "steps": list(one.steps),
            "kind": one.kind,
            "hops": one.hops,
            "source": one.source,
        }
        for one in chosen
    ]
    write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return ExemplarBank.load(path)


def _is_plan(one: Exemplar) -> bool:
    """Whether the steps form a plan whose last step depends on the others: if the data spell a name
    in two ways, the chain is broken.
    """
    if "#" not in one.steps[-1] or any(
        "#" not in step for step in one.steps[1:] if one.kind == "bridge" and one.hops == 2
    ):
        return False
    try:
        ExemplarBank.from_exemplars([one])
    except InputError:
        return False
    return True


if __name__ == "__main__":
    print(f"{len(make(Path(sys.argv[1])).exemplars)} exemplars in {SHIPPED_PLANS.name}")
