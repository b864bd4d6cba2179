"""What a model is kept from: labels in its process, and, in one of its own, files and the network."""
