"""A linear probe of a domain split: how well it tells the domains apart, and what it loses from one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .draws import bits
from .manifest import Definition
from .schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

_RIDGE = 1e-2

Matrix = NDArray[np.float64]


def domain_probe(definition: Definition, parts: dict[str, pa.Table], schema: Schema) -> dict[str, float]:
    """Ridge least squares on standardised numeric inputs, on a fixed half of the rows (by row id).

    `id_accuracy`: a classifier of the label, fitted on half of train, on its other half; `ood_accuracy`: the same
    classifier on ood_test; `domain_auroc`: a classifier of train against ood_test, on held-out halves. Empty for
    other kinds of shift and for inputs that are not numbers.
    """
    numeric = [field for field in schema.of_role("input") if field.item not in ("string", "bytes", "bool")]
    if definition.kind != "domain" or not numeric or not {"train", "ood_test"} <= parts.keys():
        return {}
    if schema[definition.label].type != "int64":
        return {}
    inputs = {name: _inputs(parts[name], [field.name for field in numeric]) for name in ("train", "ood_test")}
    labels = {name: parts[name][definition.label].to_numpy() for name in inputs}
    halves = {name: bits("probe", parts[name]["row_id"].to_numpy()) % np.uint64(2) == 0 for name in inputs}

    fit = halves["train"]
    classes = np.unique(labels["train"])
    scores = _ridge(inputs["train"][fit], (labels["train"][fit, None] == classes).astype(np.float64))
    accuracy = {
        "id": np.mean(classes[scores(inputs["train"][~fit]).argmax(1)] == labels["train"][~fit]),
        "ood": np.mean(classes[scores(inputs["ood_test"]).argmax(1)] == labels["ood_test"]),
    }
    both, half = np.concatenate(list(inputs.values())), np.concatenate(list(halves.values()))
    domain = np.repeat([0.0, 1.0], [len(values) for values in inputs.values()])
    tell = _ridge(both[half], domain[half, None])
    return {
        "id_accuracy": round(float(accuracy["id"]), 3),
        "ood_accuracy": round(float(accuracy["ood"]), 3),
        "domain_auroc": round(_auroc(tell(both[~half])[:, 0], domain[~half] == 1), 3),
    }


def _inputs(table: pa.Table, names: list[str]) -> Matrix:
    import pyarrow.compute as pc

    columns = []
    for name in names:
        column = table[name].combine_chunks()
        flat = pc.list_flatten(column) if str(column.type).startswith("fixed_size_list") else column
        columns.append(flat.to_numpy(zero_copy_only=False).astype(np.float64).reshape(table.num_rows, -1))
    return np.concatenate(columns, axis=1)


def _ridge(inputs: Matrix, targets: Matrix) -> Any:
    """A function from inputs (n, d) to scores (n, k): least squares with a small ridge, inputs standardised."""
    centre, spread = inputs.mean(0), inputs.std(0) + 1e-9

    def design(values: Matrix) -> Matrix:
        return np.concatenate([(values - centre) / spread, np.ones((len(values), 1))], axis=1)

    known = design(inputs)
    gram = known.T @ known + _RIDGE * len(known) * np.eye(known.shape[1])
    weights = np.linalg.solve(gram, known.T @ targets)
    return lambda values: design(values) @ weights


def _auroc(scores: Matrix, positive: NDArray[np.bool_]) -> float:
    """The area under the ROC curve by ranks (Mann-Whitney), ties counted as one half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n, m = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))
