"""Streamed parts: rows of remote shards, verified as they are read."""
