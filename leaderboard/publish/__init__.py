"""The board as pages."""
