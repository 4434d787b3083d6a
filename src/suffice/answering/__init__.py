"""Plan, look, read, review, and stop when the gate says enough.

    loop             `ask`: the function to read first
    expand           look for what is missing until the gate says that it is enough

    plan             sub-questions that hold together; `planning` says who makes them
    rules            plans without a model: `comparing`, `sharing` and `bridging` each take one form of question apart
    exemplars        plans that a model is shown
    joining          what earlier answers say together

    act              one step: look, and read what was found
    extractive       the reader that needs no model: `wanted` is what it looks for, `spans` what looks so, `picking` which is it
    review           is an answer to be trusted?

    budget           what may be spent, and the one hand through which a model is asked
    prompting        what a model is told, and what is made of its answer
    tracing          a journey kept, drawn and walked again; `records` reads it back

Who searches, judges and talks comes in as an argument.
"""

__all__: list[str] = []
