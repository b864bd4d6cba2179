"""What linear models on a pretrained encoder's features tell of the shift of a split of pictures, texts or sounds, of
which an audit without an encoder can only compare bytes."""

from pathlib import Path

import numpy as np

from ...benchmarks.model import Columns, Task
from ...core.draws import draw_permutation
from ...core.errors import FarshiftError
from ...loaders.part import Part
from ...loaders.split import open_split
from ...splits.audit.probe import PROBE_CLASSES, ROWS, probe_features
from .frozen import FrozenColumns


def probe_split(name: str, encoder: str, own_folders: tuple[Path, ...] = ()) -> dict[str, float]:
    """Return `domain_auroc` (can train be told from ood_test?) and, with at most 100 classes, `id_accuracy` and
    `ood_accuracy` of a linear classifier, on the encoder's features of at most 5,000 rows a part: the measures of
    `splits.audit.probe.fit_probes`.

    Raises `FarshiftError` for a split without rows in train and ood_test, and the errors of `FrozenColumns`.
    """
    split = open_split(name, own_folders)
    if not {"train", "ood_test"} <= set(split.parts):
        raise FarshiftError(f"{name} has no rows in train or in ood_test: there is no shift to measure")
    train, test = (_sample(split.part(part)) for part in ("train", "ood_test"))
    inputs = tuple(field.name for field in train.schema.of_role("input"))
    columns: Columns = {
        column: np.concatenate([part.numpy([column])[column] for part in (train, test)])
        for column in (*inputs, train.label)
    }
    task = Task("classification", inputs, train.label)
    features = FrozenColumns(encoder, task, columns).columns(columns)
    matrix = np.concatenate([features[column].reshape(len(train) + len(test), -1) for column in inputs], axis=1)
    label = train.schema[train.label]
    has_classes = not label.shape and label.type not in ("float64", "bytes")
    codes = np.unique(columns[train.label], return_inverse=True)[1] if has_classes else None
    return probe_features(
        matrix.astype(np.float64),
        np.concatenate([train.row_ids, test.row_ids]),
        np.arange(len(matrix)) >= len(train),
        codes if codes is not None and codes.max() < PROBE_CLASSES else None,
    )


def _sample(part: Part) -> Part:
    if len(part) <= ROWS:
        return part
    return part.select(np.sort(draw_permutation("audit/sample", part.row_ids)[:ROWS]))
