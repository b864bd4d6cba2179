"""Recipes of networks, algorithms and estimators, and the trainer that runs them.

The package is callable: `farshift.baselines()` lists the recipes (`running/listing.py`).

>>> import farshift as fs
>>> [one.name for one in fs.baselines("fishr")]
['fishr']
"""

from ..core.listings import make_callable

make_callable(__name__, "baselines.running.listing", "baselines")
