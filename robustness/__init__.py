"""Proof of what the product promises: each part breaks, floods or attacks it, and counts what came of it."""
