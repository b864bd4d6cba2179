"""Layers with a replica axis: what torch.nn has, for K replicas in one call.

Every parameter, and every buffer that is saved, has the replica as its first axis: 1 where a layer is made (with
torch's global generator, which the caller seeds), K once networks are stacked (`replicas.stacked.stack_networks`).
Activations are (K, n, ..). A replica's numbers do not depend on K but for rounding: batched products compute each
replica by itself.
"""
