"""Pages and records that are made of what stands: of the catalogue, and of the rules' docstrings."""
