"""ir_measures: CompleteRecall, all documents or nothing, by name among the measures of others.

pip install 'suffice[ir-measures]'
"""

import ir_measures

# The line to add: importing it registers the measure
import suffice.integrations.ir_measures  # noqa: F401

QRELS = {"q1": {"film": 1, "director": 1}, "q2": {"film": 1, "director": 1}}
RUN = {
    "q1": {"film": 3.0, "director": 2.0, "soup": 1.0},
    "q2": {"film": 3.0, "soup": 2.0, "director": 1.0},
}

measures = [
    ir_measures.parse_measure(name) for name in ("CompleteRecall@2", "CompleteRecall@3", "Judged@2")
]
for measure, value in sorted(ir_measures.calc_aggregate(measures, QRELS, RUN).items(), key=str):
    print(measure, value)
