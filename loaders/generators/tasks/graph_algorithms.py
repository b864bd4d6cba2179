"""Algorithms on graphs, with the answer alone or after the hints of each step.

The algorithms are those of CLRS-30 (Veličković et al., ICML 2022, arXiv 2205.15659): answers are each node's
predecessor, and a node without one has itself. Hints of breadth-first search and Bellman-Ford show predecessors and
distances as there; those of depth-first search are its moves, where CLRS-30 has colours, times and predecessors. Texts,
draws and sparse graphs (three edges a node on average, whatever the size) are new. A question has the nodes in
ascending order, the source, and the edges; the nodes have drawn names below 100, so that the names in larger graphs are
those of training.
"""

from __future__ import annotations

from ._contract import Draws, Examples, Tape, make_traced_examples, require

_NAMES = 100
_LARGEST_WEIGHT = 9
_DEGREE = 3

Graph = list[dict[int, int]]
"""The weight of the edge to each neighbour, for each node; neighbours in ascending order."""


def bfs(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Breadth-first search in an undirected graph of `length` nodes.

    A step has each node's predecessor, at first and after each round, "." for a node that is not reached: the first of
    its neighbours that were reached in the rounds before.
    """
    return _make_examples(draws, length, trace, "bfs")


def bellman_ford(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Shortest paths in an undirected graph of `length` nodes with weights of 1 to 9.

    A step has each node's predecessor and distance, at first and after each round over all edges, until a round changes
    nothing.
    """
    return _make_examples(draws, length, trace, "bellman_ford")


def dfs(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Depth-first search in a directed graph of `length` nodes, from each node in turn that was not reached. A step
    goes "down" to a node or "up" from it, when all nodes behind it are reached."""
    return _make_examples(draws, length, trace, "dfs")


def _make_examples(draws: Draws, nodes: int, trace: bool, algorithm: str) -> Examples:
    require(2 <= nodes <= _NAMES, nodes, f"graphs have 2 to {_NAMES} nodes")
    inputs, answers, steps = [], [], []
    for tape in draws.tapes("graph"):
        names = [str(name) for name in sorted(tape.shuffled(range(_NAMES))[:nodes])]
        graph = _draw_graph(tape, nodes, algorithm == "dfs")
        listed = [
            f"{names[a]} {names[b]}" + (f" {weight}" if algorithm == "bellman_ford" else "")
            for a, row in enumerate(graph)
            for b, weight in row.items()
            if algorithm == "dfs" or a < b
        ]
        given = [" ".join(names), " , ".join(listed) or "."]
        if algorithm == "dfs":
            before, hints = _search_depth_first(graph, names)
        else:
            source = tape.below(nodes)
            given.insert(1, names[source])
            before, hints = _relax_edges(graph, source, names, algorithm == "bellman_ford")
        inputs.append(" | ".join(given))
        answers.append(" ".join(names[node] for node in before))
        steps.append(hints)
    return make_traced_examples(inputs, answers, steps, trace)


def _draw_graph(tape: Tape, nodes: int, directed: bool) -> Graph:
    graph: Graph = [{} for _ in range(nodes)]
    for a in range(nodes):
        for b in range(nodes):
            if (directed and a != b) or a < b:
                weight = 1 + tape.below(_LARGEST_WEIGHT)
                if tape.below(nodes) < _DEGREE:
                    graph[a][b] = weight
                    if not directed:
                        graph[b][a] = weight
    return [dict(sorted(row.items())) for row in graph]


def _relax_edges(graph: Graph, source: int, names: list[str], weighted: bool) -> tuple[list[int], list[str]]:
    """Each node's predecessor, and the hints: rounds in which all nodes reached before it relax their edges at once.
    Without weights a node that is reached keeps its predecessor."""
    before, distance = list(range(len(graph))), {source: 0}
    hints, previous = [], dict[int, int]()
    while previous != distance:
        hints.append(
            " ".join(
                (f"{names[before[node]]} {distance[node]}" if weighted else names[before[node]])
                if node in distance
                else "."
                for node in range(len(graph))
            )
        )
        previous = dict(distance)
        for a in sorted(previous):
            for b, weight in graph[a].items():
                length = previous[a] + weight
                if b not in distance or (weighted and length < distance[b]):
                    before[b], distance[b] = a, length
    return before, hints


def _search_depth_first(graph: Graph, names: list[str]) -> tuple[list[int], list[str]]:
    before, reached, hints = list(range(len(graph))), set[int](), []
    for root in range(len(graph)):
        path = [] if root in reached else [root]
        while path:
            node = path[-1]
            if node not in reached:
                reached.add(node)
                hints.append(f"down {names[node]}")
            following = next((other for other in graph[node] if other not in reached), None)
            if following is None:
                hints.append(f"up {names[path.pop()]}")
            else:
                before[following] = node
                path.append(following)
    return before, hints
