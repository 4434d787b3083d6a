"""Timings against what you would use instead, as ratios within one run. Nothing here is a test."""
