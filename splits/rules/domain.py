"""Domain: train on some domains (writers, hospitals, years), test on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import format_names, read_names
from ._conditions import draw_shares

if TYPE_CHECKING:
    import pyarrow as pa


def hold_out(
    table: pa.Table,
    *,
    field: str,
    ood: list[str | int],
    dropped: list[str | int] | None = None,
    ood_val: list[str | int] | None = None,
    id_val: float = 0.0,
    id_test: float = 0.0,
    seed: str = "",
    apart: str = "",
) -> Assignment:
    """Hold out domains. Rows whose domain (`field`) is one of `ood` are `ood_test`, those of one of `ood_val` are
    `ood_val`, those of one of `dropped` are dropped, the others train; the domain is the group. Domains may be text or
    whole numbers.

    The shares `id_val` and `id_test` (rounded to rows) of each training domain are drawn by `seed` and the domain's
    name, as in DomainBed (Gulrajani and Lopez-Paz 2021, section 3).

    Parameters:
        field: the domain field, text or integers.
        ood: the domains in `ood_test`.
        dropped: domains whose rows are dropped.
        ood_val: the domains in `ood_val`.
        id_val: the share of each training domain in `id_val`, from 0 to 1.
        id_test: the share of each training domain in `id_test`, from 0 to 1.
        apart: a field, such as the photograph from which several rows were made, of which no value is both in `train`
            and in another part: the shares are of its values, and other domains keep only the values that do not train.
    """
    domains = read_names(table, field)
    named = {"ood_test": format_names(ood), "ood_val": format_names(ood_val or []), "": format_names(dropped or [])}
    every = [name for names in named.values() for name in names]
    if absent := sorted(set(every) - set(domains.tolist())):
        raise BadDefinition(f"no row has {field} = {', '.join(absent)}")
    if twice := sorted({name for name in every if every.count(name) > 1}):
        raise BadDefinition(f"{field} = {', '.join(twice)}: in two of ood, ood_val and dropped; name it once")
    part = np.full(len(domains), "train", dtype="U8")
    for name, part_domains in named.items():
        part[np.isin(domains, part_domains)] = name
    ids = table["row_id"].to_numpy()
    if apart:
        values, value_of = np.unique(read_names(table, apart), return_inverse=True)
        first_ids = np.array([ids[value_of == value].min() for value in range(len(values))], np.uint64)
        own = draw_shares(first_ids, f"{seed}/{apart}", id_val, id_test, apart)[value_of]
        trained = part == "train"
        part[~trained & (own == "train")] = ""
        part[trained] = own[trained]
        return Assignment(part=part, group=domains)
    for domain in sorted(set(domains[part == "train"].tolist())) if id_val or id_test else []:
        places = np.flatnonzero(domains == domain)
        part[places] = draw_shares(ids[places], f"{seed}/{domain}", id_val, id_test, "each training domain")
    return Assignment(part=part, group=domains)
