"""From a question and its hits to a verdict: is the evidence complete?

    gate              Gate: check, fit, adapt, drift, save. Start here; `gate_ref` opens one by name
    hits              hits of any shape
    question          the question's words and names, and what such a question needs
    features          the table of all features
    extraction        what the gate reads in the hits; `similarity` has the optional features
    reader            the transformer of the standard preset: reads the hits together
    model             submodels and ensemble; `calibration` makes probabilities of their scores
    policy            from a probability to an action, with a promise where wanted
    judge             a judge behind the gate: who is sent to it, and what its word is worth
    familiarity       how like the training questions and hits, and what that does to the interval
    explanation       reasons, what is missing, next queries; `evidence_graph` for display
    training          fitting and adapting
    drift             have the questions changed since the fit?
    stuffing_filter   the hardened preset ignores hits stuffed with the question's words

No gold label can be seen from here.
"""
