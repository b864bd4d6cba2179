"""The local cache: stored files and tables, who uses them, its limit."""
