"""The rows of a benchmark as a model may see them."""
