"""Stochastic weight averaging (Izmailov et al., UAI 2018): `moving_average`, called as `train.py` does."""

from .. import toy
from ..make import Made
from ..plain import network, taken
from ..reference import Numbers
from ..weights import along

REPOSITORY = "timgaripov/swa"
COMMIT = "411b2fcad59bec60c6c9eb1eb19ab906540e5ea2"


def averaged() -> Numbers:
    average = taken("utils.py", "moving_average")["moving_average"]
    mean, now = network(), network()
    for count, state in enumerate(along()[1:]):
        now.load_state_dict(state)
        average(mean, now, 1.0 / (count + 1))
    return {"parameters": toy.flat(mean.parameters())}


MADE = {"swa": Made(averaged, "utils.py: moving_average", {"start_percent": 33}, "finished")}
