"""Claims and orders in documents, on every preset: how often they push incomplete evidence over the
gate's threshold, compared with neutral text.

The attacks and the figure are those of `robustness.attack_eval`. This is a part of its own because
it is short enough to be measured after every change of a gate or reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.reporting import ResultTable, print_progress

from robustness.attack_eval import AttackOutcome, attack_table, load_settings, run_attack
from robustness.attacks import ATTACKS
from suffice.evaluation.reading_cache import CachedReader
from suffice.gate.gate import PRESETS, Gate
from suffice.gate.reader import Reader

CLAIMS = [one for one in ATTACKS if one.promised and one.family == "claims"]
SETS = ("hotpotqa", "2wikimultihopqa", "controlled")  # a reading for each list, attack and twin
TITLES = {
    "standard": "Claims and orders",
    "fast": "Claims and orders, a gate without a reader",
    "hardened": "Claims and orders, a hardened gate",
}


def open_gates(reader: Reader) -> dict[str, Gate]:
    """Every preset; those with a reader share this one, which reads no list twice."""
    found = {preset: Gate.load(preset=preset) for preset in PRESETS}
    return {
        preset: replace(gate, encoders=replace(gate.encoders, reader=reader))
        if gate.encoders.reader is not None
        else gate
        for preset, gate in found.items()
    }


def tables(quick: bool) -> Iterator[ResultTable]:
    gates = open_gates(CachedReader(Reader()))
    outcomes: dict[str, dict[str, dict[str, AttackOutcome]]] = {name: {} for name in gates}
    lists = []
    for one in load_settings(quick, SETS):
        print_progress(f"{one.name}: {len(CLAIMS)} claims on {len(one.incomplete)} lists")
        for name, gate in gates.items():
            outcomes[name][one.name] = {
                attack.name: run_attack(gate, one, attack) for attack in CLAIMS
            }
        lists.append(f"{one.name} {len(one.incomplete)}")
    for name, title in TITLES.items():
        says = (
            f"Incomplete lists that the shipped {name} gate answers, in percentage points "
            f"above neutral text; lists: {', '.join(lists)}."
        )
        yield attack_table(title, says, CLAIMS, outcomes[name], bound=True)
