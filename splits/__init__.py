"""The definition of a split: rows, manifests, rules, audits, and the catalogue of published manifests.

The package is callable because its name is also a public function: `farshift.splits()` lists the catalogue
(`loaders/listing.py`).

>>> import farshift as fs
>>> modular = [split for split in fs.splits(kind="corrupted-label") if split.name == "modadd97/xi35"]
>>> [(split.source, split.modality, split.parts) for split in modular]
[('modadd97', 'tabular', {'train': 4704, 'id_test': 4705})]
"""

from ..core.listings import make_callable

make_callable(__name__, "loaders.listing", "splits")
