"""Runs: the folder that an evaluation writes, its shards, its predictions."""
