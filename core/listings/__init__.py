"""Records that people look through: found by words, shown as a table in a terminal or a notebook, handed to pandas."""
