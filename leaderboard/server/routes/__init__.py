"""What the server answers: one file for each part of its address space, each with a `router`, found by listing."""
