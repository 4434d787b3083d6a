"""A graded multi-hop benchmark from any corpus: claims, triples, a knowledge graph, paths, questions, difficulty."""
