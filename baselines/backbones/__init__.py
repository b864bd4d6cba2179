"""Architectures of pretrained networks, one module each, in plain torch without a replica axis.

A module has `build(**options)`, which returns a `torch.nn.Module` with random weights, from normalised images (n, 3,
height, width) to logits (n, classes). The network's last layer is its attribute `head`; `rename(name)` turns the name
of a released tensor into its own. Released weights are loaded strictly: every tensor has to be there, and no other.
"""
