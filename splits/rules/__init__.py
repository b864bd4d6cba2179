"""Rules: small pure functions (table, parameters) -> Assignment, one file a kind of shift."""
