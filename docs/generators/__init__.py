"""The generators of docs/reference, research/results and docs/models: `python -m docs.generators` (or
`make docs`).
"""
