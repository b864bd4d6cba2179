"""Bayes nets whose variables are seen in local windows, and questions about pairs of them: the data of Prystawski, Li
and Goodman, "Why think step by step? Reasoning emerges from the locality of experience" (NeurIPS 2023,
arXiv:2304.03843), by the draws of its released code except where this says otherwise.

Each net has binary variables and a random directed acyclic graph; the probability of a variable is uniform if it has no
parents, and Beta(0.2, 0.2) for each combination of its parents' values otherwise. A window is a sample of a net of
which only some variables are shown: those within a geometric distance (1, 2 .., halving) of a random one, each left out
with probability 0.2, in random order, of which the last is the target. Of the pairs that are no neighbours, twice
`held_out` with the most mutual information are chosen, and half of them held out: no window shows both variables of
these.

The nets are small, so that their joint distribution is a table and each conditional probability a sum over it. There
are several, with variables of their own, where the paper has one net with a hundred variables at a time. Edges follow a
random order of the variables, where the code draws edges until they have no cycle; and a window of which nothing is
shown is left out, where the code draws it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_bits, draw_permutation, draw_uniform
from ...core.errors import BadDefinition
from ..readers._arrow_types import to_tensor_column
from ._rows import make_counters

Reals = NDArray[np.float64]
Row = tuple[str, list[tuple[int, int]], int, tuple[int, ...], float, str, int]
"""Set, known variables with their values, target, scaffold, probability, pair and distance of a row."""

DROPPED = 0.2
"""The share of a window's variables that are left out."""


@dataclass(frozen=True)
class Net:
    """A net. parents: of each variable, earlier ones. tables: of each, the probability of 1 by its parents' values, the
    first parent's value as the highest bit."""

    parents: tuple[tuple[int, ...], ...]
    tables: tuple[Reals, ...]

    def compute_joint(self) -> Reals:
        """The probability of all values, one axis of two for each variable."""
        joint = np.ones((2,) * len(self.parents))
        for variable, (parents, table) in enumerate(zip(self.parents, self.tables, strict=True)):
            shape = [2 if axis in (*parents, variable) else 1 for axis in range(len(self.parents))]
            joint = joint * np.stack([1 - table, table], axis=-1).reshape(shape)
        return joint

    def compute_distances(self) -> NDArray[np.int64]:
        """The edges between two variables, whatever their direction; as many as there are variables if no path is."""
        count = len(self.parents)
        distance = np.where(np.eye(count, dtype=bool), 0, count)
        for child, parents in enumerate(self.parents):
            for parent in parents:
                distance[child, parent] = distance[parent, child] = 1
        for middle in range(count):
            distance = np.minimum(distance, distance[:, middle, None] + distance[middle])
        return np.minimum(distance, count)

    def find_scaffold(self, target: int, condition: int) -> tuple[int, ...]:
        """The fewest variables that separate two in the moral graph of their ancestors, as in the released code; among
        as few the first by number."""
        ancestors, front = set(), [target, condition]
        while front:
            variable = front.pop()
            ancestors.add(variable)
            front += self.parents[variable]
        families = [{child, *self.parents[child]} for child in ancestors]
        others = sorted(ancestors - {target, condition})
        for size in range(len(others) + 1):
            for cut in combinations(others, size):
                reached, grows = {condition}, True
                while grows:
                    near = {v for family in families if family & reached for v in family} - set(cut)
                    grows, reached = not near <= reached, reached | near
                if target not in reached:
                    return cut
        raise BadDefinition("bayes_nets: neighbours have no scaffold")


SEED_MAKES = "its nets"


def rows(*, nets: int, variables: int, edges: int, held_out: int, windows: int, seed: str) -> pa.Table:
    """`windows` rows of each net, less those with no variable, and four rows of each chosen pair: each variable given
    each value of the other.

    Columns: `text`; `known` (float32, one number a variable of all nets: 1, -1 if it is 0, and 0 if it is not shown);
    `query` (float32, 1 for the target); `scaffold` (float32; 1, 2 .. for the variables of the smallest separating set
    of a pair, nearest to the condition first); `probability` of the target's being 1: its value in a window, exact to
    six decimals for a pair; `set` (window, seen pair or held-out pair), `pair` and `distance` (0 for windows)."""
    if not 3 <= variables <= 16 or not 0 < edges <= variables * (variables - 1) // 2:
        raise BadDefinition(f"bayes_nets: variables = {variables} (use 3 to 16), edges = {edges}")
    generated: list[Row] = []
    for index in range(nets):
        stream = f"{seed}/net {index}"
        net = draw_net(stream, variables, edges)
        names = index * variables + draw_permutation(f"{stream}/names", make_counters(variables))
        pairs = choose_pairs(stream, net, held_out)
        away = [pair for pair, hidden in pairs.items() if hidden]
        for row in [*_draw_windows(stream, net, windows, away), *_ask_pairs(net, pairs, names)]:
            kind, known, target, scaffold, probability, pair, distance = row
            own = [(int(names[variable]), value) for variable, value in known]
            generated.append((kind, own, int(names[target]), tuple(names[list(scaffold)]), probability, pair, distance))
    shown = np.zeros((3, len(generated), nets * variables), np.float32)
    for at, (_, known, target, scaffold, *_) in enumerate(generated):
        for variable, value in known:
            shown[0, at, variable] = 2 * value - 1
        shown[1, at, target] = 1
        for rank, variable in enumerate(scaffold, 1):
            shown[2, at, variable] = rank
    columns = {
        name: to_tensor_column(values) for name, values in zip(("known", "query", "scaffold"), shown, strict=True)
    }
    texts = [
        " ".join([f"target: X{target}", *(f"X{v}={value}" for v, value in known)]) for _, known, target, *_ in generated
    ]
    rest = {
        name: [row[at] for row in generated]
        for name, at in (("probability", 4), ("set", 0), ("pair", 5), ("distance", 6))
    }
    return pa.table({"text": texts, **columns, **rest})


def draw_net(stream: str, variables: int, edges: int) -> Net:
    """Draw a net; its variables are numbered such that parents come first."""
    pairs = list(combinations(range(variables), 2))
    chosen = sorted(draw_permutation(f"{stream}/edges", make_counters(len(pairs)))[:edges].tolist())
    parents = tuple(tuple(pairs[at][0] for at in chosen if pairs[at][1] == child) for child in range(variables))
    tables = []
    for child, own in enumerate(parents):
        name = f"{stream}/table {child}"
        tables.append(_draw_beta(name, 2 ** len(own)) if own else draw_uniform(name, make_counters(1)))
    return Net(parents, tuple(tables))


def _draw_beta(stream: str, count: int) -> Reals:
    """Beta(0.2, 0.2), with fifth powers of uniform numbers (Jöhnk 1964), which all platforms round alike."""
    tries = 8 * count + 32  # a try succeeds with probability 0.95
    x, y = (draw_uniform(f"{stream}/{side}", make_counters(tries)) for side in ("x", "y"))
    x, y = x * x * x * x * x, y * y * y * y * y
    accepted = (x + y <= 1) & (x + y > 0)
    drawn: Reals = (x[accepted] / (x[accepted] + y[accepted]))[:count]
    return drawn


def choose_pairs(stream: str, net: Net, held_out: int) -> dict[tuple[int, int], bool]:
    """The chosen pairs, and whether each is held out."""
    joint, distance = net.compute_joint(), net.compute_distances()
    far = [pair for pair in combinations(range(len(net.parents)), 2) if distance[pair] > 1]
    if len(far) < 2 * held_out:
        raise BadDefinition(f"bayes_nets: held_out = {held_out}: only {len(far)} pairs of a net are no neighbours")
    far.sort(key=lambda pair: (-round(_compute_information(sum_pair(joint, *pair)), 9), pair))
    order = draw_permutation(f"{stream}/held out", make_counters(2 * held_out))
    return {far[at]: rank < held_out for rank, at in enumerate(order.tolist())}


def sum_pair(joint: Reals, first: int, second: int) -> Reals:
    """The joint distribution of two variables, the first one's value as the row."""
    table: Reals = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in (first, second)))
    return table if first < second else table.T


def _compute_information(table: Reals) -> float:
    apart = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    some = table > 0
    return float((table[some] * np.log(table[some] / apart[some])).sum())


def _ask_pairs(net: Net, pairs: dict[tuple[int, int], bool], names: NDArray[np.int64]) -> list[Row]:
    joint, distance = net.compute_joint(), net.compute_distances()
    questions: list[Row] = []
    for pair, hidden in sorted(pairs.items()):
        name = " ".join(f"X{names[variable]}" for variable in pair)
        for condition, target in (pair, pair[::-1]):
            scaffold = sorted(net.find_scaffold(target, condition), key=lambda v: (distance[condition, v], v))
            table = sum_pair(joint, condition, target)
            for value in (0, 1):
                exact = round(float(table[value, 1] / (table[value, 0] + table[value, 1])), 6)
                kind = "held-out pair" if hidden else "seen pair"
                questions.append(
                    (kind, [(condition, value)], target, tuple(scaffold), exact, name, int(distance[pair]))
                )
    return questions


def _draw_windows(stream: str, net: Net, count: int, away: list[tuple[int, int]]) -> list[Row]:
    variables, cells = len(net.parents), make_counters(count * len(net.parents))
    uniform = draw_uniform(f"{stream}/values", cells).reshape(count, variables)
    values = np.zeros((count, variables), np.int64)
    for variable, (parents, table) in enumerate(zip(net.parents, net.tables, strict=True)):
        at = np.zeros(count, np.int64)
        for parent in parents:
            at = 2 * at + values[:, parent]
        values[:, variable] = uniform[:, variable] < table[at]
    centre = draw_below(f"{stream}/centre", make_counters(count), variables)
    reach = 1 + (draw_uniform(f"{stream}/reach", make_counters(count))[:, None] < 0.5 ** np.arange(1, variables)).sum(1)
    shown = (net.compute_distances()[centre] <= reach[:, None]) & (
        draw_uniform(f"{stream}/dropped", cells).reshape(count, variables) >= DROPPED
    )
    for index, pair in enumerate(away):
        both = np.flatnonzero(shown[:, pair].all(axis=1))
        side = draw_below(f"{stream}/hidden {index}", both.astype(np.uint64), 2)
        shown[both, np.array(pair)[side]] = False
    order = draw_bits(f"{stream}/order", cells).reshape(count, variables).argsort(axis=1)
    windows: list[Row] = []
    for row in range(count):
        own = [variable for variable in order[row].tolist() if shown[row, variable]]
        if own:
            known = [(variable, int(values[row, variable])) for variable in own[:-1]]
            windows.append(("window", known, own[-1], (), float(values[row, own[-1]]), "", 0))
    return windows
