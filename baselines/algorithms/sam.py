"""Sharpness-aware minimisation: the loss at the worst point within a radius rho of the parameters, to first order.

    minimise L(w + rho grad L(w) / |grad L(w)|)                                          (equation 2)

The step is the trainer's own (`training/optimiser_step.py`), so any algorithm may use it by the setting `sharpness`;
this one is empirical risk minimisation with it. Norms are per replica. Weight decay is outside the perturbed loss.
"""

from typing import Any

from .erm import Algorithm as Algorithm

KIND = "any"
CITATION = (
    "Foret, Kleiner, Mobahi and Neyshabur, Sharpness-Aware Minimization for Efficiently Improving Generalization, ICLR "
    "2021 (arXiv:2010.01412)"
)
TASKS = ("classification", "sequence", "regression")
SETTINGS: dict[str, Any] = {"loss": "cross-entropy", "label_smoothing": 0.0, "sharpness": 0.05}
"""sharpness: rho, the paper's default. The others: those of `erm.py`."""
SEARCH: dict[str, Any] = {"sharpness": ["choice", 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]}
LIMITS = {"loss": ("cross-entropy", "squared")}
