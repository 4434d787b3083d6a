"""The preset `deep` of suffice: a small language model reads the question with all hits.

    adapter   the LoRA adapter that ships here
    base      the language model below it, fetched once and verified
    graph     both as one int8 network for onnxruntime, built once in a cache folder
    prompt    a list of hits as tokens, as in training
    judge     log-odds of completeness, and of each hit being needed
    fetch     download and build: `suffice fetch deep` in `cli`

Only fetching and building need `gguf` and `onnx`.
"""
