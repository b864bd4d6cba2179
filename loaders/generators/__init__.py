"""Generators: sources that are pure functions of their parameters, with the same rows on every platform.

One module per generator, with `rows(**options)`. If the option `seed` determines more than the choice of rows,
`SEED_MAKES` describes what (`loaders/freezing/redraw.py`). A generator that uses an optional package has `REQUIRES`,
the module that it imports and the extra that installs it, and `maker(**options)`, which describes the versions in the
error for rows that differ from the pinned ones.
"""
