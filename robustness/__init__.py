"""Evidence for the guarantees: each part breaks, floods or attacks suffice and counts the results."""
