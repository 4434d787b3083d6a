"""The code that makes the shipped models from data and a seed. The package never imports it."""
