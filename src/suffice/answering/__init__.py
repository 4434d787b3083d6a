"""Answer a question: plan, search, read, review, and stop when the gate says it is enough.

    ask                `ask`, the function to read first
    expand             search for missing evidence until the gate is satisfied

    plan               sub-questions that depend on each other, and combining their answers
    planner            a model plans with exemplars; without a model, `rule_planner` does

    step               search and read for one sub-question, with the gate's reader or a model
    span_reader        find the answer with the gate's reader
    answer_type        the form that an answer should have
    review             whether to trust an answer

    budget             spending limits, and the metered model
    prompting          prompts, and the JSON in a model's answers
    traces             save, print and replay traces

Retriever, gate, model and library are arguments: nothing here imports one.
"""
