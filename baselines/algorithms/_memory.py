"""An algorithm's memory of each training row: a table (K, N, ..) that is a saved buffer."""

from __future__ import annotations

from torch import Tensor


def read_entries(table: Tensor, rows: Tensor) -> Tensor:
    """The entries (K, n, ..) of the rows (K, n)."""
    return table.gather(1, _compute_indices(table, rows))


def write_entries(table: Tensor, rows: Tensor, values: Tensor) -> None:
    """Put values (K, n, ..) at the rows (K, n); of a row that is there twice, one of its values stays."""
    table.scatter_(1, _compute_indices(table, rows), values)


def add_entries(table: Tensor, rows: Tensor, values: Tensor) -> None:
    """Add values (K, n, ..) at the rows (K, n), all those of a row that is there twice."""
    table.scatter_add_(1, _compute_indices(table, rows), values)


def _compute_indices(table: Tensor, rows: Tensor) -> Tensor:
    return rows.view(*rows.shape, *[1] * (table.ndim - 2)).expand(*rows.shape, *table.shape[2:])
