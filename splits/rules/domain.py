"""Domain: train on some domains (writers, hospitals, years), test on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import text_column

if TYPE_CHECKING:
    import pyarrow as pa


def hold_out(table: pa.Table, *, field: str, ood: list[str], dropped: list[str] | None = None) -> Assignment:
    """Rows whose domain (`field`) is one of `ood` are `ood_test`, those of one of `dropped` are in no part, the others
    train; the domain is the group."""
    domains = np.asarray(text_column(table, field).to_pylist(), dtype=np.str_)
    left_out = dropped or []
    if absent := sorted({*ood, *left_out} - set(domains.tolist())):
        raise BadDefinition(f"no row has {field} = {', '.join(absent)}")
    if both := sorted(set(ood) & set(left_out)):
        raise BadDefinition(f"{field} = {', '.join(both)}: in ood and in dropped; name it once")
    part = np.where(np.isin(domains, ood), "ood_test", np.where(np.isin(domains, left_out), "", "train"))
    return Assignment(part=part, group=domains)
