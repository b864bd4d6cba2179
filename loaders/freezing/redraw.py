"""Draw a split again: the same generator and options with another seed, and the same rule.

This requires that the seed determines only which rows are drawn. If it also determines what the rows are about (facts,
functions, which numbers are reserved for the test), rows of another seed cannot be predicted by a model trained on the
published rows. Such a generator sets `SEED_MAKES` to what its seed determines, such as "its facts".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import FarshiftError
from ...splits.manifest import Manifest, assign_rows
from ...splits.rows import compute_first_ids
from ..acquire.source import Distribution, Source, add_row_ids, find_requirement, load_generator
from ..split import Split, make_split

if TYPE_CHECKING:
    import pyarrow as pa


def find_seeded_distribution(source: Source) -> Distribution:
    """Return the distribution of a source that can be drawn with another seed. Raises `FarshiftError` with the reason
    if there is none."""
    distributions = [distribution for distribution in source.definition.distributions if distribution.generator]
    if not distributions:
        raise FarshiftError(f"source {source.name} comes from files: no other rows can be drawn")
    generator = distributions[0].generator
    seeded = [distribution for distribution in distributions if isinstance(distribution.options.get("seed"), str)]
    if not seeded:
        raise FarshiftError(f"source {source.name}: its generator {generator} has no seed and gives all possible rows")
    generator = seeded[0].generator
    if effect := getattr(load_generator(generator), "SEED_MAKES", ""):
        raise FarshiftError(
            f"source {source.name}: the seed of its generator {generator} also determines {effect}, which cannot be "
            "learned for another seed from the published rows"
        )
    if package := find_requirement(generator)[0]:
        raise FarshiftError(
            f"source {source.name}: the package {package} generates its rows, from seeds so small that all can be tried"
        )
    return seeded[0]


def check_redrawable(manifest: Manifest) -> None:
    """Raise `FarshiftError` if a split's rule cannot be applied to other rows than the published ones."""
    definition = manifest.definition
    if definition.files or definition.ships_rows:
        what = "reads published lists" if definition.files else "does not reproduce its rows exactly"
        raise FarshiftError(f"{manifest.full_name}: its rule {definition.rule} {what}, so it cannot divide other rows")


def redraw_rows(source: Source, seed: str) -> pa.Table:
    """Generate a source's rows with another seed, in ascending row id, with `row_id` and `check`.

    Only the first of rows with equal inputs is included, so that each id is a hash of the inputs alone and does not
    depend on the labels of other rows."""
    redrawable = find_seeded_distribution(source)
    table = source.compute_rows(redrawable.model_copy(update={"options": redrawable.options | {"seed": seed}}))
    _, first = np.unique(compute_first_ids(table, source.schema), return_index=True)
    return add_row_ids(table.take(np.sort(first)), source.schema)[0]


def redraw_split(split: Split, seed: str) -> Split:
    """Make a split of the rows that its source's generator gives with another seed, divided by its own rule. Rows whose
    value of the rule's number (length, depth ..) is outside the range of the published split are excluded: they cannot
    be compared with the public test, and the rule may reject them."""
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
    """Apply a split's rule to other rows of its source, which have `row_id` and `check`."""
    manifest = split.manifest
    return make_split(manifest, split.source, rows, assign_rows(manifest.definition, rows, split.source.schema))
