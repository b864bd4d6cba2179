"""Where rows *come from*: sources, mirrors, the verified local cache, and parts with batches."""
