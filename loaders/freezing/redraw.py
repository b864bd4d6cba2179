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
from ...core.plugins import module
from ...splits.manifest import Manifest, assign
from ...splits.rows import first_ids
from ..acquire.generator import required
from ..acquire.source import Distribution, Source, identified
from ..split import Split, split_of

if TYPE_CHECKING:
    import pyarrow as pa


def seeded(source: Source) -> Distribution:
    """The distribution of a source that another seed draws anew; `FarshiftError` says why there is none."""
    found = [one for one in source.definition.distributions if one.generator]
    if not found:
        raise FarshiftError(f"source {source.name} comes from files: there are no other rows of it to draw")
    drawn = next((one for one in found if isinstance(one.options.get("seed"), str)), None)
    if drawn is None:
        raise FarshiftError(
            f"source {source.name}: its generator {found[0].generator} takes no seed and gives all rows there are"
        )
    if made := getattr(module("loaders/generators", drawn.generator, "generator"), "SEED_MAKES", ""):
        raise FarshiftError(
            f"source {source.name}: the seed of its generator {drawn.generator} also makes {made}, which training on "
            "the published rows cannot know of another seed"
        )
    if package := required(drawn.generator)[0]:
        raise FarshiftError(
            f"source {source.name}: the package {package} makes its rows, from seeds so small that anybody can try "
            "them all"
        )
    return drawn


def check_redrawable(manifest: Manifest) -> None:
    """`FarshiftError` where a split's rule cannot be applied to other rows than the published ones."""
    definition = manifest.definition
    if definition.files or definition.ships_rows:
        what = "reads published lists" if definition.files else "does not give its rows again exactly"
        raise FarshiftError(f"{manifest.full_name}: its rule {definition.rule} {what}, so no other rows can be divided")


def redrawn_rows(source: Source, seed: str) -> pa.Table:
    """The rows that a source's generator gives with another seed, in ascending row id, with `row_id` and `check`.

    Of rows with equal inputs the first one drawn is kept: every row is the first occurrence of its inputs, so that its
    id is a hash of the inputs alone, whatever labels others had."""
    drawn = seeded(source)
    table = source.read(drawn.model_copy(update={"options": drawn.options | {"seed": seed}}))
    _, first = np.unique(first_ids(table, source.schema), return_index=True)
    return identified(table.take(np.sort(first)), source.schema)[0]


def redrawn(split: Split, seed: str) -> Split:
    """A split over the rows that its source's generator gives with another seed, divided by its own rule. Rows that are
    longer, deeper or shorter than any row of the published split, by the number that the rule divides by, are left out:
    the public test has nothing to hold them against, and a rule may refuse them."""
    check_redrawable(split.manifest)
    return divided(split, _within_published(split, redrawn_rows(split.source, seed)))


def _within_published(split: Split, rows: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    field = split.manifest.definition.parameters.get("field")
    if not isinstance(field, str) or field not in rows.column_names or not pa.types.is_integer(rows[field].type):
        return rows
    ends = pc.min_max(split.rows[field].take(split.assigned["place"]))
    return rows.filter(pc.and_(pc.greater_equal(rows[field], ends["min"]), pc.less_equal(rows[field], ends["max"])))


def divided(split: Split, rows: pa.Table) -> Split:
    """A split's rule applied to other rows of its source, which carry `row_id` and `check`."""
    manifest = split.manifest
    return split_of(manifest, split.source, rows, assign(manifest.definition, rows, split.source.schema))
