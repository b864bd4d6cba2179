"""Training steps as compiled graphs."""
