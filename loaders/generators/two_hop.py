"""Two-hop composition over a random knowledge graph: the task of Wang et al. 2024, "Grokked Transformers are Implicit
Reasoners" (arXiv 2405.15071), reimplemented with a seeded generator (the published one has no seed).

Each entity has `out_degree` facts (head, relation) -> tail, with distinct relations and uniform tails. A share of the
facts, drawn over the whole graph, is marked as out-of-distribution. Two facts compose if the tail of the first is the
head of the second: (head, relation, relation) -> tail. Compositions of one in-distribution and one out-of-distribution
fact are dropped, as in the paper.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.draws import draw_below, draw_bits, draw_permutation
from ...core.errors import BadDefinition
from ._rows import join_columns, make_counters, make_numbered_words, select_words

SEED_MAKES = "its facts"


def rows(*, seed: str, entities: int, relations: int, out_degree: int, ood_share: float) -> pa.Table:
    """All facts and all compositions. Columns: `question` ("e3 r7", or "e3 r7 r1"), `answer` ("e9"), `hops` (1 or 2),
    `facts` ("id", or "ood" for out-of-distribution facts and their compositions), `bridge` (the entity in between; ""
    for a fact), `steps` (bridge and answer, "e4 e9"; the answer for a fact: the chain of thought of Yao et al. 2025,
    arXiv 2502.04667)."""
    if not 0 < out_degree <= relations:
        raise BadDefinition(f"two_hop: out_degree = {out_degree}: must be 1 to {relations}, the number of relations")
    facts = entities * out_degree
    head = np.repeat(np.arange(entities), out_degree)
    ranked = np.argsort(
        draw_bits(f"{seed}/relation", make_counters(entities * relations)).reshape(entities, -1), kind="stable"
    )
    relation = np.sort(ranked[:, :out_degree]).ravel()
    tail = draw_below(f"{seed}/tail", make_counters(facts), entities)
    is_ood = np.zeros(facts, bool)
    is_ood[draw_permutation(f"{seed}/ood", make_counters(facts))[: round(ood_share * facts)]] = True

    first = np.repeat(np.arange(facts), out_degree)
    second = (tail[:, None] * out_degree + np.arange(out_degree)).ravel()
    is_valid = is_ood[first] == is_ood[second]
    first, second = first[is_valid], second[is_valid]

    entity, link = make_numbered_words("e", entities), make_numbered_words("r", relations)
    question = [
        join_columns(select_words(entity, head), select_words(link, relation)),
        join_columns(
            select_words(entity, head[first]), select_words(link, relation[first]), select_words(link, relation[second])
        ),
    ]
    answers = np.concatenate([tail, tail[second]])
    bridge = select_words(entity, tail[first])
    steps = [select_words(entity, tail), join_columns(bridge, select_words(entity, tail[second]))]
    return pa.table(
        {
            "question": pa.chunked_array(question),
            "answer": select_words(entity, answers),
            "hops": np.repeat([1, 2], [facts, len(first)]),
            "facts": select_words(["id", "ood"], np.concatenate([is_ood, is_ood[first]]).astype(np.int64)),
            "bridge": pa.chunked_array([select_words([""], np.zeros(facts, np.int64)), bridge]),
            "steps": pa.chunked_array(steps),
        }
    )
