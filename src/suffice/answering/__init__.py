"""Answer a question: plan, search, read, review, and stop when the gate says it is enough.

    ask                `ask`, the function to read first
    expand             search for missing evidence until the gate is satisfied

    plan               sub-questions that depend on each other, and combining their answers
    planner            a model plans with exemplars; without a model, `rule_planner` does

    step               search and read for one sub-question
    span_reader        find the answer with the gate's transformer
    extractive_reader  find it by rules, for gates without a transformer; `answer_type` finds spans
    roles              who did what to whom: whether a sentence contradicts its answer
    clauses            its grammar: verb forms, voice, and a question as a clause with a gap
    converses          verbs and nouns that say the same from the other side, and opposites
    review             whether to trust an answer

    budget             spending limits, and the metered model
    prompting          prompts, and the JSON in a model's answers
    traces             save, print and replay traces

Retriever, gate, model and library are arguments: nothing here imports one.
"""
