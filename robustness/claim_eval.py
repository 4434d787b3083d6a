"""Claims and orders in documents, with a reader and without: how often they push incomplete evidence
over the gate's threshold, compared with neutral text.

The attacks and the figure are those of `robustness.attack_eval`, which tries them on a hardened
gate. This is a part of its own because it is short enough to be measured after every change of a
gate or reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.reporting import ResultTable, print_progress

from robustness.attack_eval import (
    CLAIMS,
    FEW,
    LISTS,
    AttackOutcome,
    attack_table,
    load_settings,
    run_attack,
)
from suffice.gate.gate import FAST, STANDARD, Gate

# Lists of each data set. Each is read with every attack and its twin; made sentences show least.
SETS = {"hotpotqa": LISTS, "2wikimultihopqa": LISTS, "controlled": FEW}
TITLES = {
    STANDARD: "Claims and orders",
    FAST: "Claims and orders, a gate without a reader",
}


def tables(quick: bool) -> Iterator[ResultTable]:
    gates = {preset: Gate.load(preset=preset) for preset in TITLES}
    outcomes: dict[str, dict[str, dict[str, AttackOutcome]]] = {name: {} for name in gates}
    lists = []
    for setting in load_settings(quick, list(SETS)):
        one = replace(setting, incomplete=setting.incomplete[: SETS[setting.name]])
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
