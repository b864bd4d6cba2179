"""The web pages of a board."""
