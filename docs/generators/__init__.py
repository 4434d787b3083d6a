"""The generators of docs/reference, docs/results and docs/models: `python -m docs.generators` (or
`make docs`).
"""
