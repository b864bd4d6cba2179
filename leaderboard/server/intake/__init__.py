"""Submissions over HTTP: stored on the disk, queued in the ledger's database, scored by worker processes."""
