"""Is an answer to be trusted? Twice over: is it right, and do the sentences it cites say so?

    c = a(h) * accuracy + (1 - a(h)) * credibility

Credibility has three states: the sentences state the answer (attributable), leave it open (extrapolatory), deny it
(contradictory). a(h) falls logistically with the hops of the question: the longer the chain, the more what is cited counts and
the less what anyone believes. A model may judge both; by rules, accuracy is how well the reader's sentence fits. The rules have
the last word on support: no model, and no document that talks to one, makes attributable what the cited sentences do not hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from suffice.reason.budget import Meter
from suffice.reason.extractive import Passage, Reading, says
from suffice.reason.prompting import json_object, prompt
from suffice.reason.spans import Expects, country_of, expected
from suffice.text import STOP_WORDS, key_words, names, title_key
from suffice.types import Review, Support

__all__ = ["CREDIBILITY", "REVIEW_SCHEMA", "alpha", "review", "support_of"]

CREDIBILITY: Mapping[Support, float] = {Support.ATTRIBUTABLE: 1.0, Support.EXTRAPOLATORY: 0.5, Support.CONTRADICTORY: 0.0}
NAMED = 2 / 3  # share of a name's words that name it
MIDDLE, SLOPE = 2.5, 1.0  # the hops at which both count alike, and how fast that turns
_STATES = list(Support)

REVIEW_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "accuracy": {"type": "number", "minimum": 0, "maximum": 1},
        "support": {"type": "string", "enum": [str(one) for one in Support]},
    },
    "required": ["accuracy", "support"],
    "additionalProperties": False,
}


def alpha(hops: float) -> float:
    """The weight of accuracy: 0.82 for one hop, 0.62 for two, 0.38 for three, 0.18 for four."""
    return 1 / (1 + math.exp(SLOPE * (min(max(hops, 0.0), 50.0) - MIDDLE)))


def review(
    question: str,
    reading: Reading,
    passages: Sequence[Passage],
    *,
    hops: float,
    meter: Meter | None = None,
    weight: float | None = None,
) -> Review:
    """The confidence in a reading. `weight` fixes alpha, whatever the hops. No answer has no confidence."""
    if reading.answer is None:
        return Review(0.0, 0.0, Support.EXTRAPOLATORY, "rules")
    support, accuracy, by = support_of(question, reading, passages), min(max(reading.score, 0.0), 1.0), "rules"
    judged = _by_model(question, reading, meter) if meter is not None and reading.by == "model" else None
    if judged is not None:
        accuracy, by = judged[0], "model"
        support = max(support, judged[1], key=_STATES.index)
    share = alpha(hops) if weight is None else weight
    return Review(share * accuracy + (1 - share) * CREDIBILITY[support], accuracy, support, by)


def support_of(question: str, reading: Reading, passages: Sequence[Passage]) -> Support:
    """By rules: the cited sentences hold every word of the answer, and with their titles what the question names.

    Contradictory is an answer beside which a sentence that fits as well has another one, and a cited sentence that denies it.
    """
    if reading.answer is None or not reading.citations:
        return Support.EXTRAPOLATORY
    titles = {one.doc_id: one.title for one in passages}
    cited = " ".join(f"{titles.get(one.doc_id, '')} {one.text}" for one in reading.citations)
    if reading.rivals:
        return Support.CONTRADICTORY
    said = _words(cited)
    if expected(question) is Expects.CHOICE and reading.by == "extractive":
        return Support.EXTRAPOLATORY  # it takes more than a sentence to compare
    yes_no = title_key(reading.answer) in ("yes", "no")
    if not yes_no and not _words(reading.answer) <= said and country_of(reading.answer) != country_of(cited):
        return Support.EXTRAPOLATORY
    named = [_covered(name, said) for name in names(question)]
    covered = all(named) if yes_no else not named or any(named)
    return Support.ATTRIBUTABLE if covered and says(question, cited) else Support.EXTRAPOLATORY


def _words(text: str) -> set[str]:
    return set(" ".join(key_words(text)).casefold().split()) - STOP_WORDS


def _covered(name: str, said: set[str]) -> bool:
    """Most of a name is enough: "King Abdullah I of Jordan" is Abdullah I of Jordan."""
    words = _words(name)
    return len(words & said) >= NAMED * len(words)


def _by_model(question: str, reading: Reading, meter: Meter) -> tuple[float, Support] | None:
    """What the model says of accuracy and support; None where it does not say."""
    cited = "\n".join(f"[{number}] {one.text}" for number, one in enumerate(reading.citations, start=1))
    fenced = {"passages": cited or "(nothing cited)", "question": question, "answer": reading.answer or ""}
    said = json_object(meter.complete(prompt("review", fenced=fenced), purpose="review", schema=REVIEW_SCHEMA))
    if said is None:
        return None
    accuracy, support = said.get("accuracy"), said.get("support")
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float) or not 0 <= accuracy <= 1:
        return None
    return (float(accuracy), Support(support)) if support in list(Support) else None
