"""Client of a board in a folder, an export or a server: `farshift.Board`."""
