"""Loaders of the papers' data sets, as entry points `format.NAME`."""
