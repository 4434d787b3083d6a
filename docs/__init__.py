"""The documentation. `python -m docs` (or `make docs`) writes the generated pages of docs/reference anew."""
