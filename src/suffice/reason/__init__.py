"""Reasoning: what to do with a verdict. It is handed a retriever, a gate and a way to look documents up, and imports none."""
