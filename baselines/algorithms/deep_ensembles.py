"""Deep ensembles: the mean prediction of networks with different initial weights and data orders.

The prediction is the mean of the members' probabilities (Lakshminarayanan, Pritzel and Blundell, section 2.4). Members
are trained one after the other, each on all rows, and share the steps equally: for members trained as long as a single
network, multiply the steps by their number. The paper's smoothing by adversarial rows (section 2.3) is left out, as in
most later work; without it the training is that of `erm`.

Not compared with released code: the authors released no code; members are trained as by `erm`, which is compared.
"""

from __future__ import annotations

from typing import Any

from ._members import Members

KIND = "any"
CITATION = (
    "Lakshminarayanan, Pritzel and Blundell, Simple and scalable predictive uncertainty estimation using deep "
    "ensembles, NeurIPS 2017 (arXiv:1612.01474)"
)
TASKS = ("classification",)
TOUCHES = ("train",)
SETTINGS: dict[str, Any] = {"members": 5}
"""members: of the ensemble (the paper's), each with an equal share of the steps."""
SEARCH: dict[str, Any] = {}


class Algorithm(Members):
    additive = True
