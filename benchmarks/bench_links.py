"""Mention links: time, links and peak memory for 10 k to 1 M titles and as many documents of about
200 words.

Every document names four random titles among words that are in no title, so the matches per
document do not depend on the number of titles, and growth shows. The second table compares ways to
find titles in text: the Aho-Corasick library in use, its other automaton, the other library, and a
dictionary of title keys by first word. The figures are in docs/decisions/0005-links.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import psutil

from benchmarks.reporting import (
    ResultTable,
    peak_bytes,
    print_all,
    print_progress,
    run_in_subprocess,
)
from suffice.retrieval.links import TitleIndex, mention_links
from suffice.text import title_key, tokens
from suffice.types import Document

MODULE = "benchmarks.bench_links"
IN_TITLES, IN_TEXTS = 200_000, 60_000  # how many words each draws from; none is in both
NAMED, RUN = 4, 38  # titles that a document names, and the words before, between and after them
SEARCHED, FEW = 5000, 5


def vocabulary() -> tuple[list[str], list[str]]:
    """Words of titles and of texts, all different, pronounceable and shuffled, so that they share
    prefixes as real ones do.
    """
    syllables = [
        a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "el", "or")
    ]
    base, words = len(syllables), []
    # Every syllable begins with its only consonant before a vowel, so different numbers spell
    # different words.
    for number in (
        np.random.default_rng(1).choice(base**3, size=IN_TITLES + IN_TEXTS, replace=False).tolist()
    ):
        word = syllables[number % base] + syllables[number // base % base]
        words.append(word + syllables[number // base**2])
    return words[:IN_TITLES], words[IN_TITLES:]


def titles(count: int, words: list[str]) -> list[str]:
    """One to four words, most often two, each title once."""
    rng = np.random.default_rng(2)
    found: dict[str, None] = {}
    while len(found) < count:
        lengths = rng.choice([1, 2, 3, 4], p=[0.1, 0.5, 0.3, 0.1], size=count - len(found)).tolist()
        drawn = iter(rng.integers(len(words), size=sum(lengths)).tolist())
        for length in lengths:
            found.setdefault(" ".join(words[next(drawn)].capitalize() for _ in range(length)))
    return list(found)


def documents(count: int, names: list[str], words: list[str]) -> Iterator[Document]:
    rng = np.random.default_rng(3)
    for first in range(0, count, 1000):
        size = min(1000, count - first)
        ranks = (rng.zipf(1.3, size=(size, NAMED + 1, RUN)) % len(words)).tolist()
        named = rng.integers(len(names), size=(size, NAMED)).tolist()
        for at in range(size):
            runs = [" ".join([words[rank] for rank in run]) for run in ranks[at]]
            text = " ".join(f"{run} {names[name]}" for run, name in zip(runs, named[at]))
            yield Document(str(first + at), f"{text} {runs[-1]}", title=names[first + at])


class Stopwatch:
    """Processor time, so that other work does not count; it pauses while the texts are made."""

    def __init__(self) -> None:
        self.start, self.paused, self.letters = time.process_time(), 0.0, 0

    def read(self) -> float:
        return time.process_time() - self.start - self.paused

    def pausing(self, documents: Iterator[Document]) -> Iterator[Document]:
        while True:
            start = time.process_time()
            document = next(documents, None)
            self.letters += len(document.text) if document else 0
            self.paused += time.process_time() - start
            if document is None:
                return
            yield document


def measure(count: int) -> dict[str, float]:
    in_titles, in_texts = vocabulary()
    names = titles(count, in_titles)
    before = peak_bytes()
    watch = Stopwatch()
    index = TitleIndex((str(at), name) for at, name in enumerate(names))
    indexed = watch.read()
    links = mention_links(watch.pausing(documents(count, names, in_texts)), index)
    linked = watch.read() - indexed
    peak = peak_bytes()
    texts = [document.text for document in documents(SEARCHED, names, in_texts)]
    return {
        "index_s": indexed,
        "link_s": linked,
        "letters": watch.letters,
        "links": len(links),
        "peak": peak,
        "before": before,
        "fresh_us": reading_us(index, texts),
        "again_us": min(reading_us(index, texts[:FEW]) for _ in range(200)),
    }


def reading_us(index: TitleIndex, texts: list[str]) -> float:
    """Finding the titles alone."""
    start = time.process_time()
    for _ in index.mentions(texts):
        pass
    return (time.process_time() - start) / len(texts) * 1e6


# ---- peers

Finder = Callable[[str], int]


def padded(words: list[str]) -> str:
    return " " + "  ".join(words) + " "


def with_ahocorasick_rs(keys: list[str], implementation: str = "ContiguousNFA") -> Finder:
    from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

    automaton = AhoCorasick(
        (padded(key.split()) for key in keys),
        matchkind=MatchKind.LeftmostLongest,
        implementation=getattr(Implementation, implementation),
        store_patterns=False,
    )
    return lambda text: len(automaton.find_matches_as_indexes(padded(tokens(text))))


def with_pyahocorasick(keys: list[str]) -> Finder:
    import ahocorasick

    automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS)
    for at, key in enumerate(keys):
        automaton.add_word(padded(key.split()), at)
    automaton.make_automaton()
    return lambda text: sum(1 for _ in automaton.iter_long(padded(tokens(text))))


def with_dictionary(keys: list[str]) -> Finder:
    known, longest = set(keys), dict[str, int]()
    for key in keys:
        first, length = key.partition(" ")[0], key.count(" ") + 1
        longest[first] = max(longest.get(first, 0), length)

    def find(text: str) -> int:
        words, at, found = tokens(text), 0, 0
        while at < len(words):
            for length in range(min(longest.get(words[at], 0), len(words) - at), 0, -1):
                if " ".join(words[at : at + length]) in known:
                    found, at = found + 1, at + length
                    break
            else:
                at += 1
        return found

    return find


PEERS: dict[str, Callable[[list[str]], Finder]] = {
    "ahocorasick_rs, contiguous (ours)": with_ahocorasick_rs,
    "ahocorasick_rs, not contiguous": lambda keys: with_ahocorasick_rs(keys, "NoncontiguousNFA"),
    "pyahocorasick": with_pyahocorasick,
    "dictionary in Python": with_dictionary,
}


def measure_peer(name: str, count: int) -> dict[str, float]:
    in_titles, in_texts = vocabulary()
    names = titles(count, in_titles)
    keys = list(dict.fromkeys(map(title_key, names)))
    texts = [document.text for document in documents(min(SEARCHED, count), names, in_texts)]
    process = psutil.Process()
    before, watch = process.memory_info().rss, Stopwatch()
    find = PEERS[name](keys)
    build, held = watch.read(), process.memory_info().rss - before
    found = sum(map(find, texts))
    return {
        "build_s": build,
        "held": held,
        "us": (watch.read() - build) / len(texts) * 1e6,
        "found": found,
    }


def tables(quick: bool, peers: int | None = None) -> Iterator[ResultTable]:
    sizes = [10_000, 100_000] if quick else [10_000, 100_000, 1_000_000]
    got = {}
    for count in sizes:
        print_progress(f"links of {count:,} documents")
        got[count] = run_in_subprocess(MODULE, "--measure", str(count))
    yield by_size(got)
    yield ways(peers or sizes[0 if quick else -1])


def by_size(got: dict[int, dict[str, float]]) -> ResultTable:
    rows = []
    for count, one in got.items():
        each = (
            f"{one['link_s'] / count * 1e6:.0f}",
            f"{one['link_s'] / one['letters'] * 1e9:.0f}",
            f"{one['links'] / count:.2f}",
        )
        reading = (f"{one['fresh_us']:.0f}", f"{one['again_us']:.0f}")
        memory = (f"{one['peak'] / 2**20:,.0f}", f"{(one['peak'] - one['before']) / count:,.0f}")
        rows.append(
            (
                f"{count:,}",
                f"{one['index_s']:.1f}",
                f"{one['link_s']:.1f}",
                *each,
                *reading,
                *memory,
            )
        )
    least, most = got[min(got)], got[max(got)]
    dearer = most["link_s"] / max(got) / (least["link_s"] / min(got))
    fresh, again = (most[key] / least[key] for key in ("fresh_us", "again_us"))
    return ResultTable(
        "Titles and documents by number",
        "As many titles as documents, processor time of one core without making the texts; required: linear in the documents, "
        "bounded memory at one million.",
        (
            "documents",
            "index s",
            "link s",
            "us each",
            "ns a letter",
            "links each",
            "fresh us",
            "again us",
            "peak MiB",
            "bytes each",
        ),
        tuple(rows),
        (
            f"A document costs {dearer:.2f} times as much among {max(got):,} titles as among {min(got):,}, with as many links. "
            f"`fresh` and `again` are finding the titles alone, in new texts and in {FEW} texts read over and over, whose "
            f"parts of the automaton stay in the processor's caches: they grow {fresh:.2f} and {again:.2f} times. So much of "
            "the growth as `again` does not share is waiting for memory; the rest is longer ways through a larger automaton.",
            "The peak holds the benchmark's own list of titles too; `bytes each` is what index and links added to the peak.",
        ),
    )


def ways(count: int) -> ResultTable:
    rows = []
    for name in PEERS:
        print_progress(f"{name}, {count:,} titles")
        got = run_in_subprocess(MODULE, "--measure-peer", name, "--peers", str(count))
        figures = (
            f"{got['build_s']:.1f}",
            f"{got['held'] / 2**20:,.0f}",
            f"{got['us']:.0f}",
            f"{got['found']:,}",
        )
        rows.append((name, *figures))
    return ResultTable(
        f"Ways to find {count:,} titles",
        f"Splitting {min(SEARCHED, count):,} documents into words and finding the titles in them, each way in its own process.",
        ("way", "build s", "held MiB", "us a document", "found"),
        tuple(rows),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 k and 100 k documents only")
    parser.add_argument(
        "--peers",
        type=int,
        help="how many titles the comparison of ways uses; the largest size unless told",
    )
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure-peer", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.measure)))
        return 0
    if chosen.measure_peer:
        print(json.dumps(measure_peer(chosen.measure_peer, chosen.peers)))
        return 0
    return print_all(tables(chosen.quick, chosen.peers))


if __name__ == "__main__":
    sys.exit(main())
