"""Mention links: build time, links and peak memory from 10 k to 1 M titles and as many documents of 200 words.

Each size runs in a process of its own, so that its peak memory is its own. The second table compares the ways to find titles in
text: the Aho-Corasick library in use, the other one, and a dictionary of title keys by first word.
`python -m benchmarks.bench_links --peers 1000000` gives the figures of docs/decisions/0007-mention-links.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from suffice.retrieve.links import TitleIndex, mention_links
from suffice.text import title_key, tokens
from suffice.types import Document

WORDS, LENGTH, NAMED = 60_000, 190, 3
MODULE = "benchmarks.bench_links"


def vocabulary() -> list[str]:
    """Pronounceable words, so that titles share beginnings as real ones do."""
    rng = np.random.default_rng(1)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "el", "or")]
    return ["".join(rng.choice(syllables, size=rng.integers(1, 5))) for _ in range(WORDS)]


def titles(count: int, words: list[str]) -> list[str]:
    """One to four words, most often two; a number where a title would repeat."""
    rng = np.random.default_rng(2)
    found: dict[str, None] = {}
    for length in rng.choice([1, 2, 3, 4], p=[0.1, 0.5, 0.3, 0.1], size=count).tolist():
        title = " ".join(words[at].capitalize() for at in rng.integers(WORDS, size=length))
        found.setdefault(title if title not in found else f"{title} {len(found)}")
    return list(found)


def documents(count: int, names: list[str], words: list[str]) -> Iterator[Document]:
    rng = np.random.default_rng(3)
    for at in range(count):
        text = [words[rank % WORDS] for rank in rng.zipf(1.3, size=LENGTH).tolist()]
        for name in rng.integers(len(names), size=NAMED).tolist():
            text.insert(int(rng.integers(len(text))), names[name])
        yield Document(str(at), " ".join(text), title=names[at])


class Stopwatch:
    """Processor time, so that other work on the machine does not count; it stands still while the texts are made."""

    def __init__(self) -> None:
        self.start, self.paused = time.process_time(), 0.0

    def read(self) -> float:
        return time.process_time() - self.start - self.paused

    def pausing(self, documents: Iterator[Document]) -> Iterator[Document]:
        while True:
            start = time.process_time()
            document = next(documents, None)
            self.paused += time.process_time() - start
            if document is None:
                return
            yield document


def measure(count: int) -> dict[str, float]:
    words = vocabulary()
    names = titles(count, words)
    watch = Stopwatch()
    index = TitleIndex((str(at), name) for at, name in enumerate(names))
    indexed = watch.read()
    links = mention_links(watch.pausing(documents(count, names, words)), index)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"index_s": indexed, "link_s": watch.read() - indexed, "links": len(links), "peak": peak}


# ----------------------------------------------------------------------------------------------------- peers

Finder = Callable[[str], int]


def padded(words: list[str]) -> str:
    return " " + "  ".join(words) + " "


def with_ahocorasick_rs(keys: list[str]) -> Finder:
    from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

    automaton = AhoCorasick(
        (padded(key.split()) for key in keys),
        matchkind=MatchKind.LeftmostLongest,
        implementation=Implementation.ContiguousNFA,
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
    known, longest = set(keys), {}
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


PEERS = {"ahocorasick_rs (ours)": with_ahocorasick_rs, "pyahocorasick": with_pyahocorasick, "dictionary": with_dictionary}


def measure_peer(name: str, count: int) -> dict[str, float]:
    words = vocabulary()
    names = titles(count, words)
    keys = list(dict.fromkeys(map(title_key, names)))
    texts = [document.text for document in documents(5000, names, words)]
    process = psutil.Process()
    before, watch = process.memory_info().rss, Stopwatch()
    find = PEERS[name](keys)
    build, held = watch.read(), process.memory_info().rss - before
    found = sum(map(find, texts))
    return {"build_s": build, "held": held, "us": (watch.read() - build) / len(texts) * 1e6, "found": found}


def apart(*arguments: str) -> dict[str, float]:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", MODULE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 k and 100 k documents only")
    parser.add_argument("--peers", type=int, default=100_000, help="how many titles the comparison of ways uses")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure-peer", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.measure)))
        return
    if chosen.measure_peer:
        print(json.dumps(measure_peer(chosen.measure_peer, chosen.peers)))
        return
    console = Console(width=110)
    growth = Table("titles = documents", "index s", "link s", "us a document", "links", "peak MiB", title="Mention links")
    for count in [10_000, 100_000] if chosen.quick else [10_000, 100_000, 1_000_000]:
        got = apart("--measure", str(count))
        times = (f"{got['index_s']:.1f}", f"{got['link_s']:.1f}", f"{got['link_s'] / count * 1e6:.0f}")
        growth.add_row(f"{count:,}", *times, f"{got['links']:,}", f"{got['peak'] / 2**20:,.0f}")
    console.print(growth)
    ways = Table("way", "build s", "held MiB", "us a document", "found in 5,000", title=f"Ways to find {chosen.peers:,} titles")
    for name in PEERS:
        got = apart("--measure-peer", name, "--peers", str(chosen.peers))
        figures = (f"{got['build_s']:.1f}", f"{got['held'] / 2**20:,.0f}", f"{got['us']:.0f}", f"{got['found']:,}")
        ways.add_row(name, *figures)
    console.print(ways)


if __name__ == "__main__":
    main()
