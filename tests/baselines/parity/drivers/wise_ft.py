"""Weight-space interpolation (Wortsman et al., CVPR 2022): `_merge`."""

from .. import toy
from ..make import Made
from ..plain import taken
from ..reference import Numbers
from ..weights import along

REPOSITORY = "mlfoundations/wise-ft"
COMMIT = "58b7a4b343b09dc06606aa929c2ef51accced8d1"


def merged() -> Numbers:
    early, *_, last = along()
    result = taken("src/wise_ft.py", "_merge")["_merge"](0.3, early, last, None, None)
    return {"parameters": toy.flat(result.values())}


MADE = {"wise_ft": Made(merged, "src/wise_ft.py: _merge", {"alpha": 0.3, "early_percent": 33}, "finished")}
