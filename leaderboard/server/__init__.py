"""A board behind HTTP: what takes submissions in, and what shows pages. Everything that is written goes through the
functions that write a board in its folder."""
