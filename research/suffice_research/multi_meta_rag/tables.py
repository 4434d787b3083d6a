"""The tables of the Multi-Meta-RAG study, and the results in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from suffice.evaluation.metrics import score
from suffice.evaluation.report import Cell, Table
from suffice.evaluation.significance import (
    Difference,
    compare,
    interval,
    mean_interval,
    paired_difference,
)
from suffice_research.multi_meta_rag.filter_quality import FilterQuality
from suffice_research.multi_meta_rag.published import ANSWERS as PAPER_ANSWERS
from suffice_research.multi_meta_rag.published import TABLE as PAPER
from suffice_research.multi_meta_rag.systems import Results, SystemOutcome

__all__ = [
    "BASELINE",
    "BASELINE_RERANKED",
    "BY_MODEL",
    "MEASURES",
    "MENDED",
    "NOTHING",
    "OURS",
    "OURS_RERANKED",
    "PLAIN",
    "PUBLISHED",
    "PUBLISHED_RERANKED",
    "QUOTA",
    "READER",
    "READER_ABSTAINS",
    "RELAXED",
    "SHARED",
    "SOFTENED",
    "answers",
    "extraction",
    "filters",
    "findings",
    "reranking",
    "retrieval",
]

BASELINE = "baseline"
PUBLISHED = "published filter (GPT-3.5)"
MENDED = "published filter, checked by us"
SOFTENED = "published filter, soft"
PLAIN = "our filter, missing fails"
OURS = "our filter"
QUOTA = "our filter + quota"
RELAXED = "our filter, relaxed by the gate"
BASELINE_RERANKED = "baseline + rerank"
PUBLISHED_RERANKED = "published filter + rerank"
OURS_RERANKED = "our filter + rerank"
SHARED = "our filter + half rerank + quota"
BY_MODEL = "model's filter"
NOTHING = "nothing read"
READER = "our reader"
READER_ABSTAINS = "our reader, may abstain"
MEASURES = {
    "MRR@10": "official_mrr@10",
    "MAP@10": "official_map@10",
    "Hits@10": "official_hits@10",
    "Hits@4": "official_hits@4",
    "complete@4": "complete@4",
    "complete@10": "complete@10",
}
ARTICLES = "complete@10, articles"
LIFTED = ("Hits@4", "MRR@10", "complete@4", "complete@10")
KINDS = ("inference", "comparison", "temporal")
ANSWER_KINDS = (*KINDS, "null")


def _figures(outcome: SystemOutcome, seed: int) -> tuple[Cell, ...]:
    on_facts = (interval(outcome.facts, metric, seed=seed) for metric in MEASURES.values())
    return (*on_facts, interval(outcome.articles, "complete@10", seed=seed))


def _above(one: SystemOutcome, other: SystemOutcome, measure: str, seed: int) -> Difference:
    if measure == ARTICLES:
        return compare(one.articles, other.articles, "complete@10", seed=seed)
    return compare(one.facts, other.facts, MEASURES[measure], seed=seed)


def _systems(title: str, outcomes: dict[str, SystemOutcome], seed: int, note: str = "") -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, *_figures(outcome, seed)) for name, outcome in outcomes.items()
    ]
    return Table(title, ("system", *MEASURES, ARTICLES), tuple(rows), note)


def _differences(title: str, outcomes: dict[str, SystemOutcome], seed: int) -> Table:
    columns = (*LIFTED, ARTICLES)
    rows: list[tuple[Cell, ...]] = [
        (name, *(_above(outcome, outcomes[BASELINE], measure, seed) for measure in columns))
        for name, outcome in outcomes.items()
        if name != BASELINE
    ]
    return Table(
        title,
        ("system", *columns),
        tuple(rows),
        "Paired bootstrap over questions, 1,000 resamples, 95 % interval.",
    )


def retrieval(found: Results, encoder: str, seed: int) -> Iterator[Table]:
    """Figures, differences from the baseline, and the differences by kind of question."""
    outcomes = found.benches[encoder]
    shares = ", ".join(
        f"{name} {outcomes[name].relaxed:.1%}" for name in (OURS, RELAXED) if name in outcomes
    )
    note = f"Questions with a hit that does not pass the filter (relaxed): {shares}."
    yield _systems(f"Retrieval by {encoder}", outcomes, seed, note)
    yield _differences(f"Above the baseline, {encoder}", outcomes, seed)
    rows: list[tuple[Cell, ...]] = []
    for kind in KINDS:
        which = np.array([one == kind for one in found.kinds])
        one, other = outcomes[OURS].rows(which), outcomes[BASELINE].rows(which)
        rows.append(
            (kind, int(which.sum()), *(_above(one, other, measure, seed) for measure in LIFTED))
        )
    yield Table(
        f"{OURS.capitalize()} above the baseline by kind, {encoder}",
        ("kind", "n", *LIFTED),
        tuple(rows),
    )


def reranking(found: Results, encoder: str, seed: int) -> Iterator[Table]:
    """The sample that the cross-encoder read."""
    outcomes = found.reranked[encoder]
    note = "; ".join(
        f"{PAPER.printed[name]} in the paper: {_published(name)}" for name in PAPER.figures
    )
    yield _systems(
        f"With the cross-encoder, {encoder}", outcomes, seed, f"n = {len(found.sample):,}. {note}."
    )
    yield _differences(f"With the cross-encoder above the baseline, {encoder}", outcomes, seed)


def _published(name: str) -> str:
    figures = ((label, PAPER.get(name, metric)) for label, metric in MEASURES.items())
    return ", ".join(f"{label} {value:g}" for label, value in figures if value is not None)


def _quality(title: str, quality: Mapping[str, FilterQuality], seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, one in quality.items():
        exact = mean_interval(one.exact, seed=seed)
        dates = (one.date_precision, one.day_precision, one.date_recall)
        rows.append((name, exact, one.source_precision, one.source_recall, *dates))
    known = quality[OURS]
    columns = (
        "filter",
        "exact source set",
        "source precision",
        "source recall",
        "date precision",
        "of days",
        "date recall",
    )
    note = (
        f"Sources: n = {int((~np.isnan(known.exact)).sum()):,} questions whose evidence has known sources; "
        f"dates: {known.days_gold:,} days of evidence; most questions name none. 'Of days': ranges left out."
    )
    return Table(title, columns, tuple(rows), note)


def extraction(found: Results, seed: int) -> Iterator[Table]:
    """A language model's filters compared with the rules' and the published ones."""
    title = "A model's filters against the evidence's metadata"
    table = _quality(title, found.extracted, seed)
    unread = f" Answers of the model without a filter that can be read: {found.extracted_unread}."
    yield replace(table, note=table.note + unread)
    n = len(next(iter(found.extracted_found.values())).facts.gold)
    yield _systems(
        "Retrieval with a model's filters",
        found.extracted_found,
        seed,
        f"n = {n} of these questions have evidence. All filters are soft.",
    )
    yield _differences("A model's filters above the baseline", found.extracted_found, seed)


def answers(found: Results, seed: int) -> Iterator[Table]:
    """The paper's Tables 3 and 4: accuracy without and with filters, and by kind of question."""
    for title, measure in (
        ("Accuracy of answers, a word shared", "shares_word"),
        ("Accuracy of answers, exact", "exact"),
    ):
        rows: list[tuple[Cell, ...]] = []
        for (who, system), scores in found.answers.items():
            values, kinds = getattr(scores, measure), np.array(found.answer_kinds[who])
            by_kind = (mean_interval(values[kinds == kind], seed=seed) for kind in ANSWER_KINDS)
            rows.append((who, system, len(values), mean_interval(values, seed=seed), *by_kind))
        if measure == "shares_word":
            nothing = (None,) * len(ANSWER_KINDS)
            rows += [(who, system, None, value, *nothing) for who, system, value in PAPER_ANSWERS]
        yield Table(
            title,
            ("read by", "filter", "n", "all", *ANSWER_KINDS),
            tuple(rows),
            "The paper's rows are over all 2,556 questions of the whole corpus; its figures by kind are not in our copy of it."
            if measure == "shares_word"
            else "The answer's words are the right answer's words, in order.",
        )
    rows = []
    for who in (who for who, system in found.answers if system == BASELINE):
        base = found.answers[who, BASELINE]
        for system in (PUBLISHED, OURS):
            if (who, system) in found.answers:
                one = found.answers[who, system]
                gains = (
                    paired_difference(getattr(one, at), getattr(base, at), seed=seed)
                    for at in ("shares_word", "exact")
                )
                rows.append((who, system, *gains))
    yield Table(
        "Answers with a filter above those without",
        ("read by", "filter", "a word shared", "exact"),
        tuple(rows),
        "Paired bootstrap over questions, 1,000 resamples, 95 % interval.",
    )


def filters(found: Results, seed: int) -> Iterator[Table]:
    """Filter quality, emptied results, invented filters."""
    yield _quality("Filters against the evidence's metadata", found.quality, seed)
    yield Table(
        "Results that the filter empties",
        ("filter", "an article without the field fails", "it passes"),
        tuple((name, *counts) for name, counts in found.emptied.items()),
        f"Of {found.questions:,} questions, null questions among them. Our filters are applied so that it passes. By sources "
        f"alone, and with the outlets of the whole corpus that no article of our copy carries, the published ones would empty "
        f"{found.emptied_elsewhere}.",
    )
    invented = tuple(
        (name, count, wrong, 1 - wrong / count)
        for name, (wrong, count) in found.invented.items()
        if count
    )
    yield Table(
        "Filters invented for questions that name no source",
        ("data set", "questions", "with a filter", "share without"),
        invented,
        "Other data sets' questions, read with MultiHop-RAG's sources and dates.",
    )


# ---- in plain words


def findings(found: Results, seed: int) -> Iterator[str]:
    """What should hold, and whether it does."""
    ours, theirs = found.quality[OURS], found.quality[PUBLISHED]
    exact = paired_difference(ours.exact, theirs.exact, seed=seed)
    yield _said(
        (exact.low or 0) > 0,
        f"our filters name exactly the evidence's sources more often than the published ones: {_signed(exact)}",
    )
    pairs = ((ours.date_precision, theirs.date_precision), (ours.date_recall, theirs.date_recall))
    yield _said(
        all((one or 0) > (other or 0) for one, other in pairs),
        "our dates are more precise and found more often: precision {:.3f} against {:.3f}, recall {:.3f} against {:.3f}".format(
            *(value or 0.0 for pair in pairs for value in pair)
        ),
    )
    yield _said(
        found.emptied[OURS][1] == 0,
        f"our filter empties no result: {found.emptied[OURS][1]} as it is applied; where a missing field fails, "
        f"{found.emptied[OURS][0]} against {found.emptied[PUBLISHED][0]} of the published ones",
    )
    # The figure itself is among the timings: it differs between runs, and the document must not.
    yield _said(
        found.extraction_ms < 1, "our extractor needs less than 1 ms of processor time a question"
    )
    if found.invented:
        worst = min(1 - wrong / count for wrong, count in found.invented.values())
        yield _said(
            worst >= 0.99,
            f"no filter is invented for at least {worst:.1%} of other data sets' questions",
        )
    for encoder, outcomes in found.benches.items():
        yield from _lifted(encoder, outcomes, found, seed)
    for encoder, outcomes in found.reranked.items():
        whole = _above(outcomes[OURS_RERANKED], outcomes[OURS], "complete@10", seed)
        half = _above(outcomes[SHARED], outcomes[OURS], "complete@10", seed)
        yield (
            f"{encoder}, n = {len(found.sample):,}: the cross-encoder alone moves complete@10 by {_signed(whole)} from our "
            f"filter's order, by half and with a quota by {_signed(half)}."
        )

    yield from _extracted_words(found, seed)
    yield from _answer_words(found, seed)


def _extracted_words(found: Results, seed: int) -> Iterator[str]:
    """How the model's filters compare with ours and with the published ones."""
    for name in found.extracted:
        if name.startswith(BY_MODEL):
            apart = {
                other: paired_difference(
                    found.extracted[name].exact, found.extracted[other].exact, seed=seed
                )
                for other in (OURS, PUBLISHED)
            }
            words = ", ".join(f"{_signed(one)} from {other}" for other, one in apart.items())
            yield f"{name}: exactly the evidence's sources, {words}."


def _answer_words(found: Results, seed: int) -> Iterator[str]:
    """The effect of filters on answers; "improves" only if the interval is above zero."""
    for who in (who for who, system in found.answers if system == BASELINE):
        ours, base = found.answers[who, OURS], found.answers[who, BASELINE]
        lift = paired_difference(ours.shares_word, base.shares_word, seed=seed)
        yield _said(
            (lift.low or 0) > 0,
            f"answers by {who} are right more often with our filter: {_signed(lift)}, n = {len(base.exact)}",
        )


def _lifted(
    encoder: str, outcomes: dict[str, SystemOutcome], found: Results, seed: int
) -> Iterator[str]:
    ours, base = outcomes[OURS], outcomes[BASELINE]
    lifts = {measure: _above(ours, base, measure, seed) for measure in LIFTED}
    words = ", ".join(f"{measure} {_signed(one)}" for measure, one in lifts.items())
    yield _said(
        all((one.low or 0) > 0 for one in lifts.values()), f"{encoder}: our filter lifts {words}"
    )
    by_kind = {}
    for kind in KINDS:
        which = np.array([one == kind for one in found.kinds])
        by_kind[kind] = [
            (score(ours.facts.rows(which), MEASURES[one]) or 0)
            - (score(base.facts.rows(which), MEASURES[one]) or 0)
            for one in LIFTED
        ]
    most = all(
        by_kind[kind][at] > by_kind["inference"][at]
        for kind in ("comparison", "temporal")
        for at in range(len(LIFTED))
    )
    yield _said(
        most,
        f"{encoder}: comparison and temporal questions gain more than inference questions in each of these",
    )


def _said(holds: bool, words: str) -> str:
    return f"{'Holds' if holds else 'Does not hold'}: {words}."


def _signed(one: Difference) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "--"
    return f"{one.value:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"
