"""How our algorithms are run on the toy: a function `run_<problem>(algorithm, settings)` for each way, which gives numbers
by the names that the reference has."""

from ..reference import Numbers, Reference
from . import predictions, steps, values

RUNS = {
    name.removeprefix("run_"): run
    for module in (steps, values, predictions)
    for name, run in vars(module).items()
    if name.startswith("run_")
}


def of(reference: Reference) -> Numbers:
    """Our numbers for what a reference has."""
    result: Numbers = RUNS[reference.problem](reference.algorithm, dict(reference.settings))
    return result
