"""Deep feature reweighting (Kirichenko et al., ICLR 2023): `dfr_on_validation_eval` on the toy's features."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from farshift.baselines.replicas.rng import derive_stream, draw_permutations, make_keys
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import nn

from .. import draws
from ..make import Made
from ..plain import network, on_cpu, taken
from ..problems.predictions import CLASSES, held
from ..problems.predictions import list_refitted as asked
from ..reference import Numbers

REPOSITORY = "PolinaKirichenko/deep_feature_reweighting"
COMMIT = "9d8d5de78feafb0ba99878b8a1f91c5cd942e62a"
STRENGTH, DRAWS = 0.7, 3


class Exact(LogisticRegression):  # type: ignore[misc, unused-ignore]
    """In place of its solver (liblinear), which penalises the bias too and stops early."""

    asked: Any = None

    def __init__(self, penalty: str, C: float, solver: str, class_weight: Any) -> None:
        super().__init__(C=C, l1_ratio=1.0, solver="saga", tol=1e-12, max_iter=200_000, random_state=0)

    def predict(self, x: Any) -> Any:
        if Exact.asked is None:
            Exact.asked = self.predict_proba(x)[:, 1]
        return super().predict(x)


def refitted() -> Numbers:
    """Its features are standardised by those of training rows, which are the validation rows here."""
    x, y, group = held()
    number = (group * CLASSES + y).numpy()
    built = network(classes=CLASSES)
    body = nn.Sequential(*list(built)[:2])
    counts = np.bincount(number)
    turns = iter((name, draw) for draw in range(DRAWS) for name in range(len(counts)))

    def shuffle(rows: Any) -> None:
        """The rows of a group in our order."""
        name, draw = next(turns)
        order = draw_permutations(derive_stream(make_keys([draws.NAME]), "subset", name, draw), len(rows))[0]
        rows[:] = rows[torch.argsort(order).numpy()]

    random = SimpleNamespace(shuffle=lambda rows: shuffle(rows) if len(rows) < len(x) else None)
    arrays: Any = SimpleNamespace(**{name: getattr(np, name) for name in ("max", "min", "mean", "where", "arange")})
    vars(arrays).update(concatenate=np.concatenate, bincount=np.bincount, random=random)
    code = taken(
        "dfr_evaluate_spurious.py",
        "dfr_on_validation_eval",
        np=arrays,
        StandardScaler=StandardScaler,
        LogisticRegression=Exact,
        REG="l1",
        print=lambda *_: None,
    )
    with on_cpu(), torch.no_grad():
        features, test = body(x).numpy(), body(asked()).numpy()
    zeros = np.arange(len(test)) % CLASSES
    given = [
        {"train": features, "val": features, "test": test},
        {"train": y.numpy(), "val": y.numpy(), "test": zeros},
        {"train": number, "val": number, "test": zeros},
    ]
    call = partial(code["dfr_on_validation_eval"], STRENGTH, 1.0, 1.0, *given)
    call(num_retrains=DRAWS, balance_val=True, add_train=False)
    return {"first": Exact.asked.tolist()}


MADE = {
    "dfr": Made(
        refitted,
        "dfr_evaluate_spurious.py: dfr_on_validation_eval",
        {"inverse_strength": STRENGTH, "draws": DRAWS},
        "refitted",
        within=1e-4,
        remark="its solver is replaced by one that does not penalise the bias; features are standardised by validation "
        "rows; drawn as ours",
    )
}
