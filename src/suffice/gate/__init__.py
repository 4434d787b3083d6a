"""From a question and its hits to a verdict: is the evidence complete?

    gate             the Gate: check, fit, adapt, shift, save. Start here
    incoming         whatever a retriever hands over becomes evidence; `agreement` compares it with other runs

    reading          one pass over a question and its hits; `asking` reads the question, `pages` a hit, each once
    folding          text as that pass sees it; `words` has vectors and rarity by look-up
    similarity       likeness in meaning, for the quality preset; `looking` puts all that is seen side by side
    screen           of a hardened gate: hits that seem stuffed are not read; `support` says what bears a hit out,
                     `repeats` that several say the same
    features         one table of everything that is looked at

    lessons          labelled examples, and what they teach
    parts            models of hits, absent names and, in `hops`, of the question; `whole` the one over all of them
    model            both fitted together; `trees` writes and runs them as ONNX
    calibration      from a score to a probability that means what it says
    adapting         another corpus, with a few labels; `own` a model of these alone, `shares` without labels
    drift            has the world moved since the fit?
    keeping          a gate on disk

    policy           from a probability to an action, with a promise where wanted
    explain          reasons, what is missing, what to look for next; `drawing` shows what connects

    selections       the features of MAGAF and FRAMES; `classic` has their predictors

No gold label can be seen from here.
"""

__all__: list[str] = []
