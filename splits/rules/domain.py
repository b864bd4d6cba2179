"""Domain: train on some domains (writers, hospitals, years), test on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..assignment import Assignment
from ..errors import BadDefinition
from ..words import text_column

if TYPE_CHECKING:
    import pyarrow as pa


def hold_out(table: pa.Table, *, field: str, ood: list[str]) -> Assignment:
    """Rows whose domain (`field`) is one of `ood` are `ood_test`, the others train; the domain is the group."""
    domains = np.asarray(text_column(table, field).to_pylist(), dtype=np.str_)
    absent = sorted(set(ood) - set(domains.tolist()))
    if absent:
        raise BadDefinition(f"no row has {field} = {', '.join(absent)}")
    return Assignment(part=np.where(np.isin(domains, ood), "ood_test", "train"), group=domains)
