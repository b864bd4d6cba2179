"""Batches of a part: their order, their columns, and the same on a device or as a torch data set."""
