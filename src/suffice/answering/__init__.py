"""Answer a question: plan, search, read, review, and stop when the gate says it is enough.

    ask                `ask`, the function to read first
    expand             search for missing evidence until the gate is satisfied

    plan               sub-questions that depend on each other, and combining their answers
    planner            a model plans after exemplars, or else the rules of `rule_planner`

    step               search and read for one sub-question
    span_reader        the gate's transformer finds the answer; without one, the rules of
    extractive_reader  do; `answer_type` finds their spans
    roles              who did what to whom: whether a sentence speaks against its answer
    review             whether to trust an answer

    budget             what may be spent, and the metered model
    prompting          prompts, and the JSON in a model's answers
    traces             saved, printed and replayed

Retriever, gate, model and library are arguments: nothing here imports one.
"""
