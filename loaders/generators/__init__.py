"""Generators: sources that are pure functions of their parameters; the same rows on every platform.

One file each, with `rows(**options)`. Where the option `seed` decides more than which rows there are, `SEED_MAKES` says
what (`loaders/freezing/redraw.py`).
"""
