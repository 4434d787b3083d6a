"""Models, language models and frameworks that suffice works with; each needs its own extra."""
