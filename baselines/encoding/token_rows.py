"""Token ids of training rows, ragged: int32 ids end to end, and the offset of each row. Rows are padded when a batch of
them is read, and only to the longest of the batch.

`TokenRows` replaces a tensor (n, T) of all rows padded to the longest: it has the operations by which rows are read.
They return int64, as embeddings require.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...loaders.batching.tokens import Tokens


class Rows:
    """The operations by which a tensor of rows is read, of rows that are made when they are read; they never change."""

    shape: torch.Size

    def __len__(self) -> int:
        return self.shape[0]

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        raise NotImplementedError

    def index_select(self, dim: int, rows: Tensor) -> Tensor:
        assert dim == 0
        return self[rows]

    def split(self, rows: int, dim: int = 0) -> Iterator[Tensor]:
        """All rows in chunks, as `torch.split` expects."""
        assert dim == 0
        return (self[start : start + rows] for start in range(0, len(self), rows))


class TokenRows(Rows):
    """Ids (n, T), each plus 1, PAD (0) after a row's end; T is the longest row's length, and 1 at least."""

    dtype = torch.int64

    def __init__(self, ids: Tensor, offsets: Tensor, longest: int) -> None:
        """ids: (all + 1,) int32, PAD the last. offsets: (n + 1,) int64."""
        self.ids, self.offsets, self.longest = ids, offsets, longest
        self.shape = torch.Size((len(offsets) - 1, longest))

    @classmethod
    def of(cls, tokens: Tokens) -> TokenRows:
        """The rows of tokenised texts, in memory."""
        ids: NDArray[np.int32] = np.zeros(len(tokens.ids) + 1, np.int32)
        np.add(tokens.ids, 1, out=ids[:-1], casting="unsafe")
        longest = max(1, int(tokens.lengths.max(initial=1)))
        return cls(torch.from_numpy(ids), torch.from_numpy(tokens.offsets.copy()), longest)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("ids", "offsets", "longest"):
            raise AttributeError(name)
        return getattr(self.to_tensor(), name)

    def to(self, device: str | torch.device) -> TokenRows:
        return TokenRows(self.ids.to(device), self.offsets.to(device), self.longest)

    @property
    def device(self) -> torch.device:
        return self.ids.device

    @property
    def nbytes(self) -> int:
        return int(self.ids.nbytes + self.offsets.nbytes)

    @property
    def lengths(self) -> Tensor:
        """(n,) int64."""
        return self.offsets.diff()

    def at(self, rows: Tensor) -> Tensor:
        """The rows with the indices (..): (.., T), T the longest's length among them, and 1 at least."""
        flat = rows.reshape(-1).to(self.device)
        begin, stop = self.offsets[flat], self.offsets[flat + 1]
        longest = max(1, int((stop - begin).max())) if len(flat) else 1
        places = begin[:, None] + torch.arange(longest, device=self.device)
        # The last of all ids is PAD: it is read after the end of a row.
        places = torch.where(places < stop[:, None], places, len(self.ids) - 1)
        return self.ids[places].long().view(*rows.shape, longest)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        places = torch.arange(len(self), device=self.device)[rows]
        return self.at(places)

    def to_tensor(self) -> Tensor:
        """All rows, padded to the longest."""
        return self.at(torch.arange(len(self), device=self.device))
