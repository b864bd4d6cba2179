"""Batches of a part: their order and columns, as arrays, on a device, or as a torch data set."""
