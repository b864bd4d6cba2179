"""From entries to tables: standings, rank sets, suite aggregates."""
