"""Convert a part to a `datasets.Dataset`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.canonical import compute_identity, to_canonical_json
from ...core.errors import MissingExtra
from ...splits.schema import Field
from ..batching.batched import BatchedPart
from .content import describe_export

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Dataset


_LARGEST_OFFSET = 2**31 - 1


def to_hf(part: BatchedPart) -> Dataset:
    """Return the part as a `datasets.Dataset` over the memory of `Part.arrow`; its columns are `Part.columns`.

    Features: scalars keep their type; a label with class names is a `ClassLabel`; a tensor of one dimension is a list
    of fixed length, one of two to five an `Array2D` .. `Array5D`. Its fingerprint is computed from the manifest's
    identity and the rows, so results that `map` caches are found again. Raises `MissingExtra` without `datasets`.
    """
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("a datasets.Dataset", "stream") from error
    table = part.arrow()
    tensors = {field.name: field for field in part.schema.fields if field.shape}
    features = datasets.Features()
    for name, column in zip(table.column_names, table.columns, strict=True):
        shape = tensors[name].shape if name in tensors else ()
        if not shape:
            kind = str(column.type)
            features[name] = datasets.Value({"double": "float64", "float": "float32"}.get(kind, kind))
        elif len(shape) == 1:
            features[name] = datasets.Sequence(datasets.Value(tensors[name].item), length=shape[0])
        else:
            features[name] = getattr(datasets, f"Array{len(shape)}D")(shape, tensors[name].item)
    names = list(part.label_names)
    if names and len(set(names)) == len(names) and part.schema[part.label].type == "int64":
        features[part.label] = datasets.ClassLabel(names=names)
    for name, field in tensors.items():
        if len(field.shape) > 1:
            column_index = table.column_names.index(name)
            table = table.set_column(column_index, name, _nest_lists(table[name], field, features[name]()))
    export_description = describe_export(part)
    return datasets.Dataset(
        datasets.table.InMemoryTable(table),
        info=datasets.DatasetInfo(description=to_canonical_json(export_description).decode(), features=features),
        split=datasets.NamedSplit(part.exported_name),
        fingerprint=compute_identity(export_description)[:16],
    )


def _nest_lists(column: pa.ChunkedArray, field: Field, target: pa.ExtensionType) -> pa.ChunkedArray:
    """Convert fixed-size lists to the nested lists that `datasets` stores, without copying the elements."""
    import numpy as np
    import pyarrow as pa

    at_once = max(1, _LARGEST_OFFSET // math.prod(field.shape))
    chunks = []
    for chunk in column.chunks:
        for start in range(0, len(chunk), at_once):
            values = chunk.slice(start, at_once).flatten()
            for side in reversed(field.shape):
                offsets = np.arange(0, len(values) + 1, side, dtype=np.int32)
                values = pa.ListArray.from_arrays(pa.array(offsets), values)
            chunks.append(pa.ExtensionArray.from_storage(target, values))
    return pa.chunked_array(chunks, target)
