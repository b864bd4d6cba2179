"""Comparison over a random table of attributes: the task of Wang et al. 2024, "Grokked Transformers are Implicit
Reasoners" (arXiv 2405.15071), reimplemented with a seeded generator (the published one has no seed).

Every entity has a value, 0 to `values` - 1, of every attribute. For each attribute, a share of the entities is marked
as out-of-distribution; two entities are compared only if both are, or neither is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_permutation
from ...core.errors import BadDefinition
from ._rows import join_columns, make_counters, make_numbered_words, select_words

SEED_MAKES = "the values of its entities"

_OUTCOMES = ("smaller", "equal", "larger")


def rows(*, seed: str, entities: int, attributes: int, values: int, ood_share: float, id_pairs: int) -> pa.Table:
    """All facts, `id_pairs` drawn comparisons of in-distribution entities and all of the others, in both orders.

    Columns: `question` ("a3 e12", or "a3 e12 e90"), `answer` ("v7"; or smaller, equal, larger: how the first entity
    compares with the second), `hops` (1 for a fact, 2 for a comparison), `facts` ("id" or "ood").
    """
    value = draw_below(f"{seed}/value", make_counters(attributes * entities), values).reshape(attributes, entities)
    is_ood = np.zeros((attributes, entities), bool)
    for attribute in range(attributes):
        drawn = draw_permutation(f"{seed}/ood/{attribute}", make_counters(entities))[: round(ood_share * entities)]
        is_ood[attribute, drawn] = True
    inside, outside = _list_pairs(~is_ood), _list_pairs(is_ood)
    if id_pairs > len(inside):
        raise BadDefinition(f"comparison: id_pairs = {id_pairs}, but there are {len(inside)} such pairs")
    inside = inside[np.sort(draw_permutation(f"{seed}/pairs", make_counters(len(inside)))[:id_pairs])]
    attribute, first, other = np.concatenate([inside, outside]).T
    outcome = np.sign(value[attribute, first] - value[attribute, other]) + 1

    which, whose = (grid.ravel() for grid in np.indices(value.shape))
    name, entity = make_numbered_words("a", attributes), make_numbered_words("e", entities)
    questions = [
        join_columns(select_words(name, which), select_words(entity, whose)),
        join_columns(select_words(name, attribute), select_words(entity, first), select_words(entity, other)),
    ]
    answers = [select_words(make_numbered_words("v", values), value.ravel()), select_words(_OUTCOMES, outcome)]
    set_apart = np.concatenate([is_ood.ravel(), np.repeat([False, True], [len(inside), len(outside)])])
    return pa.table(
        {
            "question": pa.chunked_array(questions),
            "answer": pa.chunked_array(answers),
            "hops": np.repeat([1, 2], [value.size, len(attribute)]),
            "facts": select_words(["id", "ood"], set_apart.astype(np.int64)),
        }
    )


def _list_pairs(member: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return (attribute, entity, other entity) for all ordered pairs of members of an attribute, shape (pairs, 3)."""
    both = member[:, :, None] & member[:, None, :] & ~np.eye(member.shape[1], dtype=bool)
    return np.argwhere(both)
