"""Integrations with models, language models and frameworks; each needs its own extra."""
