"""How a board's files are stored, exported, and read where they lie."""
