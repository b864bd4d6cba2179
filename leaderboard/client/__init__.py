"""A board wherever it is, as `farshift.Board` reads it: a folder, an export, a server."""
