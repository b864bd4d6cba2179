"""What the API answers: one file for each part of its address space, found by listing. Each has a `router`, which is
mounted below /api/v1."""
