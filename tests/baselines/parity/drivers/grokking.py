"""Modular arithmetic with corrupted labels (Doshi et al., ICLR 2024): `calculate_ipr` of Fourier components."""

import numpy as np

from ..make import Made
from ..plain import taken
from ..problems.values import weights_participation as weights
from ..reference import Numbers

REPOSITORY = "d-doshi/Grokking"
COMMIT = "0b4335f7b64d1417e27968f02ed9b50e9ef3581f"


def ratios() -> Numbers:
    """As its scripts call it."""
    call = taken("utils/data_processing.py", "calculate_ipr", np=np)["calculate_ipr"]
    return {"ratios": [float(call(np.absolute(np.fft.rfft(row)), 2)) for row in weights().numpy()]}


MADE = {
    "ipr_pruning": Made(
        ratios, "utils/data_processing.py: calculate_ipr", {}, "participation", remark="the ratio, by which neurons go"
    )
}
