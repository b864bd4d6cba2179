"""An embedding per replica."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Embedding(nn.Module):
    """Ids (K, n, ..) int64 to vectors (K, n, .., width). weight: (K, count, width), standard normal at first.

    padding: the id whose vector is zero and stays it; None for none."""

    def __init__(self, count: int, width: int, padding: int | None = None) -> None:
        super().__init__()
        self.count, self.padding = count, padding
        self.weight = nn.Parameter(torch.randn(1, count, width))
        if padding is not None:
            with torch.no_grad():
                self.weight[:, padding] = 0

    def forward(self, ids: Tensor) -> Tensor:
        replicas = len(self.weight)
        if replicas == 1:
            return F.embedding(ids, self.weight.squeeze(0), self.padding)
        # One table of all replicas: its gradient is one sorted scatter instead of K.
        offset = torch.arange(replicas, device=ids.device) * self.count
        vectors = F.embedding(ids + offset.view(-1, *[1] * (ids.ndim - 1)), self.weight.flatten(0, 1))
        if self.padding is None:
            return vectors
        return torch.where((ids == self.padding)[..., None], 0.0, vectors)
