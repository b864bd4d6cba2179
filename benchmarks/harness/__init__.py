"""The evaluation harness: from a model and a benchmark to predictions."""
