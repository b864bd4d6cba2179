"""SCAN with more primitives: rows of the training part of addprim_jump, in which verbs have other names.

Zhou, Jiang and Bansal 2023 (arXiv 2311.04420) give SCAN 2, 20 and 200 times as many primitives by the rule of Jiang,
Zhou and Bansal 2022 (Mutual Exclusivity Training and Primitive Augmentation to Induce Compositionality; their
prim2primX.py): each verb of a row keeps its name or gets a numbered one, the same wherever it stands in the row, and so
does its action.
"""

from __future__ import annotations

from math import gcd

import numpy as np
import pyarrow as pa

from ...core.draws import draw_below
from .scan import VERBS, list_commands

SEED_MAKES = "which names the verbs of training have"
ALONE = "jump"
"""The verb whose combinations are the test: they are not renamed."""


def rows(*, names: int, seed: str) -> pa.Table:
    """Columns `command`, `actions` and `copy` (0 as in SCAN): all 20,910 commands, and `names` - 1 copies of each in
    training that has a verb, with different names.

    names: how many names each verb has. A command with one verb has it under each; one with two has them under pairs of
    names, whose first is drawn and which lie a drawn step apart.
    """
    known = list_commands()
    tables = [pa.table({"command": list(known), "actions": list(known.values()), "copy": [0] * len(known)})]
    copies = np.arange(1, names)
    counter = np.arange(len(known), dtype=np.uint64)
    pairs = names**2 - 1
    starts, steps = (draw_below(f"{seed}/{what}", counter, pairs).tolist() for what in ("first", "step"))
    for row, (command, actions) in enumerate(known.items()):
        verbs = [word for word in dict.fromkeys(command.split()) if word in VERBS]
        if not verbs or (ALONE in verbs and command != ALONE):
            continue
        numbers = [copies.tolist()]
        if len(verbs) == 2:
            step = 1 + steps[row]
            while gcd(step, pairs) > 1:
                step += 1
            codes = 1 + (starts[row] + step * copies) % pairs
            numbers = [(codes // names).tolist(), (codes % names).tolist()]
        renamed = {"command": [command] * (names - 1), "actions": [actions] * (names - 1)}
        for verb, own in zip(verbs, numbers, strict=True):
            for field, word in (("command", verb), ("actions", f"I_{verb.upper()}")):
                named = zip(renamed[field], own, strict=True)
                renamed[field] = [text.replace(word, f"{word}{number or ''}") for text, number in named]
        tables.append(pa.table({**renamed, "copy": copies}))
    return pa.concat_tables(tables).combine_chunks()
