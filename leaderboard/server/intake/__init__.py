"""What was handed in over HTTP: kept on the disk, queued in the ledger's database, scored by worker processes."""
