"""Timings against what a user would use instead, as ratios within one run. Nothing here is a test."""
