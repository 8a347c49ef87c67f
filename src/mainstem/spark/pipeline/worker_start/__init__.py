"""Holds what every Python process of a local Spark runs first; see `sitecustomize` in it."""
