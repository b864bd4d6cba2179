"""Domain: train on some domains (writers, hospitals, years), test on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import format_names, read_names_column

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
    domains = np.asarray(read_names_column(table, field).to_pylist(), dtype=np.str_)
    named = {"ood_test": format_names(ood), "ood_val": format_names(ood_val or []), "": format_names(dropped or [])}
    every = [name for names in named.values() for name in names]
    if absent := sorted(set(every) - set(domains.tolist())):
        raise BadDefinition(f"no row has {field} = {', '.join(absent)}")
    if twice := sorted({name for name in every if every.count(name) > 1}):
        raise BadDefinition(f"{field} = {', '.join(twice)}: in two of ood, ood_val and dropped; name it once")
    if min(id_val, id_test) < 0 or id_val + id_test >= 1:
        raise BadDefinition(f"id_val = {id_val}, id_test = {id_test}: shares of each training domain, below 1 together")
    part = np.full(len(domains), "train", dtype="U8")
    for name, part_domains in named.items():
        part[np.isin(domains, part_domains)] = name
    ids = table["row_id"].to_numpy()
    if apart:
        values, value_of = np.unique(read_names_column(table, apart).to_pylist(), return_inverse=True)
        first_ids = np.array([ids[value_of == value].min() for value in range(len(values))], np.uint64)
        own = _draw_parts(first_ids, f"{seed}/{apart}", id_val, id_test)[value_of]
        trained = part == "train"
        part[~trained & (own == "train")] = ""
        part[trained] = own[trained]
        return Assignment(part=part, group=domains)
    for domain in sorted(set(domains[part == "train"].tolist())) if id_val or id_test else []:
        places = np.flatnonzero(domains == domain)
        part[places] = _draw_parts(ids[places], f"{seed}/{domain}", id_val, id_test)
    return Assignment(part=part, group=domains)


def _draw_parts(counters: NDArray[np.uint64], seed: str, id_val: float, id_test: float) -> NDArray[np.str_]:
    """Draw `id_val` and `id_test` by their shares; the rest is `train`. Shape (counters,)."""
    part = np.full(len(counters), "train", dtype="U8")
    order = draw_permutation(seed, counters)
    tested, chosen = round(id_test * len(order)), round(id_val * len(order))
    part[order[:tested]] = "id_test"
    part[order[tested : tested + chosen]] = "id_val"
    return part
