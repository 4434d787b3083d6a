"""The documentation. `docs.generators` writes the generated pages: run `make docs`."""
