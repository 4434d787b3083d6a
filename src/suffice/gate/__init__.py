"""Check a question and its hits: is the evidence complete?

    gate              Gate: check, fit, adapt, drift, save. Start here; `gate_ref` opens one by name
    hits              accepts hits of any shape
    question          the question's words and names, and how many documents it needs
    features          the table of all features
    extraction        computes features from the hits; `similarity` has the optional ones
    reader            the transformer of the standard preset: reads the hits together
    model             submodels and ensemble, of `trees`; `calibration` gives probabilities
    policy            turns a probability into an action, optionally with a promise
    judge             a slower reader behind the gate, for lists that it is unsure of
    familiarity       similarity to the training questions and hits, and its effect on the interval
    explanation       reasons, what is missing, next queries; `evidence_graph` for display
    training          fitting and adapting
    drift             have the questions changed since the fit?
    stuffing_filter   the hardened preset ignores hits stuffed with the question's words

This package has no access to gold labels.
"""
