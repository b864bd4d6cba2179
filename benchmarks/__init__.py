"""What is *measured*, and how certainly: benchmark definitions, the harness, metrics, intervals.

The package is callable: `farshift.benchmarks()` lists the benchmarks (`listing.py`).

>>> import farshift as fs
>>> [one.name for one in fs.benchmarks("scan", suite="core", kind="length")]
['scan/length']
"""

from ..core.listings import make_callable

make_callable(__name__, "benchmarks.listing", "benchmarks")
