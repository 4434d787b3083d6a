"""deepeval: is what was retrieved enough? A metric without a language model.

pip install 'suffice[deepeval]'
"""

from deepeval.test_case import LLMTestCase

from suffice.integrations.deepeval import EvidenceCompleteness
from suffice.integrations.ragas_rows import to_ragas_row

QUESTION = "Where was the director of the film Metropolis born?"
FILM = "Metropolis is a 1927 German film directed by Fritz Lang."
WRONG = "Superman lives in the city of Metropolis and works for a newspaper."

metric = EvidenceCompleteness()  # in use: assert_test(case, [metric]), or evaluate(cases, [metric])
case = LLMTestCase(input=QUESTION, actual_output="Metropolis", retrieval_context=[FILM, WRONG])
metric.measure(case)
print("passes" if metric.is_successful() else "fails", "-", metric.reason)
print(sorted(to_ragas_row(case)))  # a row for `suffice fit --dataset ragas`
