"""Validation of submissions: a file is read under limits, and all its problems are reported at once.

`submission/validate.py` has the one validator of pack, submit and board, with the checks of rows and values. Its parts
are here: `limits.py` (sizes), `problem.py` (every problem by name, with its remedy), `archive.py` (the zip),
`reader.py` (a separate process, the only one that decodes untrusted input) and `process.py` (its parent's side),
`card.py` (the two TOML files)."""
