"""Comparison over a random table of attributes: the task of Wang et al. 2024, "Grokked Transformers are Implicit
Reasoners" (arXiv 2405.15071), from a seeded generator of our own (theirs has no seed).

Every entity has a value, 0 to `values` - 1, of every attribute. For each attribute a share of the entities is set apart
as out-of-distribution; two entities are compared only where both are, or neither is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import below, shuffled
from ...core.errors import BadDefinition
from ._columns import joined, named, numbered
from ._drawn import counters

if TYPE_CHECKING:
    import pyarrow as pa

SEED_MAKES = "the values of its entities"

_OUTCOMES = ("smaller", "equal", "larger")


def rows(*, seed: str, entities: int, attributes: int, values: int, ood_share: float, id_pairs: int) -> pa.Table:
    """All facts, `id_pairs` drawn comparisons of in-distribution entities and all of the others, in both orders.

    Columns: `question` ("a3 e12", or "a3 e12 e90"), `answer` ("v7"; or smaller, equal, larger: how the first entity
    compares with the second), `hops` (1 for a fact, 2 for a comparison), `facts` ("id" or "ood").
    """
    import pyarrow as pa

    value = below(f"{seed}/value", counters(attributes * entities), values).reshape(attributes, entities)
    apart = np.zeros((attributes, entities), bool)
    for attribute in range(attributes):
        drawn = shuffled(f"{seed}/ood/{attribute}", counters(entities))[: round(ood_share * entities)]
        apart[attribute, drawn] = True
    inside, outside = _pairs(~apart), _pairs(apart)
    if id_pairs > len(inside):
        raise BadDefinition(f"comparison: id_pairs = {id_pairs}, but there are {len(inside)} such pairs")
    inside = inside[np.sort(shuffled(f"{seed}/pairs", counters(len(inside)))[:id_pairs])]
    attribute, one, other = np.concatenate([inside, outside]).T
    outcome = np.sign(value[attribute, one] - value[attribute, other]) + 1

    which, whose = (grid.ravel() for grid in np.indices(value.shape))
    name, entity = numbered("a", attributes), numbered("e", entities)
    asked = [
        joined(named(name, which), named(entity, whose)),
        joined(named(name, attribute), named(entity, one), named(entity, other)),
    ]
    answers = [named(numbered("v", values), value.ravel()), named(_OUTCOMES, outcome)]
    set_apart = np.concatenate([apart.ravel(), np.repeat([False, True], [len(inside), len(outside)])])
    return pa.table(
        {
            "question": pa.chunked_array(asked),
            "answer": pa.chunked_array(answers),
            "hops": np.repeat([1, 2], [value.size, len(attribute)]),
            "facts": named(["id", "ood"], set_apart.astype(np.int64)),
        }
    )


def _pairs(member: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(attribute, entity, other entity) of all ordered pairs of members of an attribute, shape (pairs, 3)."""
    both = member[:, :, None] & member[:, None, :] & ~np.eye(member.shape[1], dtype=bool)
    return np.argwhere(both)
