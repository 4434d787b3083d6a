"""The code that makes the models that ship, from data and seed. The package never imports it."""
