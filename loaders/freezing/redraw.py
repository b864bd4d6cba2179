"""Drawing a split again: the same generator, the same options but for its seed, the same rule.

Only a generator whose seed decides nothing but which rows there are can be drawn again. Where the seed also makes the
world that the rows are about (facts, functions, which numbers are kept for the test), rows of another seed ask about
another world, and a model trained on the published rows can know nothing of it. Such a generator says in `SEED_MAKES`
what its seed makes, such as "its facts".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import FarshiftError
from ...core.plugins import load_module
from ...splits.manifest import Manifest, assign_rows
from ...splits.rows import compute_first_ids
from ..acquire.generator import find_requirement
from ..acquire.source import Distribution, Source, add_row_ids
from ..split import Split, make_split

if TYPE_CHECKING:
    import pyarrow as pa


def find_seeded_distribution(source: Source) -> Distribution:
    """The distribution of a source that another seed draws anew; `FarshiftError` says why there is none."""
    distributions = [distribution for distribution in source.definition.distributions if distribution.generator]
    if not distributions:
        raise FarshiftError(f"source {source.name} comes from files: there are no other rows of it to draw")
    redrawable = next(
        (distribution for distribution in distributions if isinstance(distribution.options.get("seed"), str)), None
    )
    if redrawable is None:
        raise FarshiftError(
            f"source {source.name}: its generator {distributions[0].generator} takes no seed and gives all rows there "
            "are"
        )
    if effect := getattr(load_module("loaders/generators", redrawable.generator, "generator"), "SEED_MAKES", ""):
        raise FarshiftError(
            f"source {source.name}: the seed of its generator {redrawable.generator} also makes {effect}, which "
            "training on "
            "the published rows cannot know of another seed"
        )
    if package := find_requirement(redrawable.generator)[0]:
        raise FarshiftError(
            f"source {source.name}: the package {package} makes its rows, from seeds so small that anybody can try "
            "them all"
        )
    return redrawable


def check_redrawable(manifest: Manifest) -> None:
    """`FarshiftError` where a split's rule cannot be applied to other rows than the published ones."""
    definition = manifest.definition
    if definition.files or definition.ships_rows:
        what = "reads published lists" if definition.files else "does not give its rows again exactly"
        raise FarshiftError(f"{manifest.full_name}: its rule {definition.rule} {what}, so no other rows can be divided")


def redraw_rows(source: Source, seed: str) -> pa.Table:
    """The rows that a source's generator gives with another seed, in ascending row id, with `row_id` and `check`.

    Of rows with equal inputs the first one drawn is kept: every row is the first occurrence of its inputs, so that its
    id is a hash of the inputs alone, whatever labels others had."""
    redrawable = find_seeded_distribution(source)
    table = source.read(redrawable.model_copy(update={"options": redrawable.options | {"seed": seed}}))
    _, first = np.unique(compute_first_ids(table, source.schema), return_index=True)
    return add_row_ids(table.take(np.sort(first)), source.schema)[0]


def redraw_split(split: Split, seed: str) -> Split:
    """A split over the rows that its source's generator gives with another seed, divided by its own rule. Rows that are
    longer, deeper or shorter than any row of the published split, by the number that the rule divides by, are left out:
    the public test has nothing to hold them against, and a rule may refuse them."""
    check_redrawable(split.manifest)
    return apply_split_rule(split, _limit_to_published(split, redraw_rows(split.source, seed)))


def _limit_to_published(split: Split, rows: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    field = split.manifest.definition.parameters.get("field")
    if not isinstance(field, str) or field not in rows.column_names or not pa.types.is_integer(rows[field].type):
        return rows
    ends = pc.min_max(split.rows[field].take(split.assigned["place"]))
    return rows.filter(pc.and_(pc.greater_equal(rows[field], ends["min"]), pc.less_equal(rows[field], ends["max"])))


def apply_split_rule(split: Split, rows: pa.Table) -> Split:
    """A split's rule applied to other rows of its source, which carry `row_id` and `check`."""
    manifest = split.manifest
    return make_split(manifest, split.source, rows, assign_rows(manifest.definition, rows, split.source.schema))
