"""Data loading: sources, mirrors, the verified local cache, and parts with batches."""
