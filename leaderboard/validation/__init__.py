"""May this file be scored? A submission is read under limits, and all its problems are reported at once.

`submission/validate.py` has `check`, the one validator of pack, submit and board. Here lie its parts: `limits.py`
(how much of anything is taken), `problem.py` (every way to be refused, by name), `archive.py` (the zip), `reader.py`
(a process of its own, which alone decodes untrusted input, by `decoding.py`) and `process.py` (this side of
it), `expected_table.py` (what passes between them), `card.py` and `run_card.py` (what the two TOML files must say),
`predictions.py` (rows and values)."""
