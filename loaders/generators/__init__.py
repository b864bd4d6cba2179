"""Generators: sources that are pure functions of their parameters; the same rows on every platform.

One file each, with `rows(**options)`. Where the option `seed` decides more than which rows there are, `SEED_MAKES` says
what (`loaders/freezing/redraw.py`). A generator that leaves the making to an optional package says in `REQUIRES` which
module it imports and which extra brings it, and its `maker(**options)` who made the rows, for the error where they are
not the pinned ones.
"""
