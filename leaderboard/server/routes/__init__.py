"""Routes of the API: each module is found by listing this folder, and its `router` is mounted below /api/v1."""
