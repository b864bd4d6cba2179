"""A graph in a text is read edge by edge; the network is what its equations say, and can be a search."""

from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.encoding.encoding import SETTINGS, make_encoding
from farshift.baselines.networks import node_pointer
from farshift.baselines.networks.node_pointer import Network, read_graphs
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError
from farshift.loaders.generators import algorithmic

from .side_by_side import built

TASK = Task("sequence", ("input",), "output", tokens="word")
SETTINGS_HERE: dict[str, Any] = {"width": 5, "rounds": 0}


def draw(task: str, first: int, last: int, each: int = 3) -> dict[str, np.ndarray]:
    sizes = [{"first": first, "last": last, "each": each}]
    table = algorithmic.rows(task=f"graph_algorithms/{task}", seed="here", sizes=sizes, options={"trace": False})
    return {name: np.array(table[name].to_pylist(), object) for name in ("input", "output")}


def encode(task: str, texts: Any) -> tuple[Any, torch.Tensor]:
    """An encoding that has seen all hundred names, and the ids of texts."""
    train = draw(task, 40, 40, 20)
    coding = make_encoding(TASK, train, SETTINGS)
    return coding, coding.inputs({"input": np.array(texts, object)})[0]


def split(text: str, weighted: bool) -> tuple[list[str], set[str], dict[tuple[int, int], str]]:
    """Nodes, sources and the weight of each edge ("" for none) of a graph's text."""
    nodes, *sources, edges = text.split(" | ")
    names = nodes.split()
    pairs = [edge.split() for edge in edges.split(" , ")] if edges != "." else []
    weights = {(names.index(a), names.index(b)): weight[0] if weighted else "" for a, b, *weight in pairs}
    return names, set(sources), weights


@pytest.mark.parametrize("task", ["bfs", "bellman_ford", "dfs"])
def test_a_text_is_read_as_the_graph_that_it_is(task):
    texts = draw(task, 2, 9)["input"]
    coding, source = encode(task, texts)
    graphs = read_graphs(source[None], torch.tensor(coding.sizes.copies))
    words = ["", "", "", "", *coding.source.words]
    for row, text in enumerate(texts):
        names, sources, edges = split(text, task == "bellman_ford")
        assert [words[index] for index in graphs.names[0, row] if index] == names
        assert {names[index] for index in graphs.source[0, row].nonzero()[:, 0].tolist()} == sources
        read = {(a, b): words[graphs.weights[0, row, a, b]] for a, b in graphs.edges[0, row].nonzero().tolist()}
        assert read == edges


def brute_force(network: Network, replica: int, text: str, coding: Any) -> dict[tuple[int, int], float]:
    """The score of each node as each node's answer, over lists of neighbours."""
    w = {key: value[replica].detach().numpy() for key, value in network.state_dict().items()}

    def apply(layer: str, x: Any) -> Any:
        return w[f"{layer}.weight"] @ x + w.get(f"{layer}.bias", 0)

    names, sources, edges = split(text, True)
    ids = {word: index for index, word in enumerate(coding.source.words, 4)}

    def look(i: int, j: int) -> tuple[list[int], int]:
        weight = edges.get((i, j)) or edges.get((j, i)) or ""
        return [int((j, i) in edges), int((i, j) in edges), int(i == j)], ids.get(weight, 0)

    count = range(len(names))
    given = [apply("read", [float(name in sources), i / len(names)]) for i, name in enumerate(names)]
    h = [np.maximum(0, x) for x in given]
    for _ in names:
        heard = []
        for i in count:
            sent = [np.zeros(5)]
            for j in count:
                kinds, weight = look(i, j)
                if any(kinds):
                    along = apply("along", kinds) + w["weigh.weight"][weight]
                    sent.append(np.maximum(0, apply("hear", h[i]) + apply("send", h[j]) + along))
            heard.append(np.max(sent, axis=0))
        h = [np.maximum(0, given[i] + apply("keep", h[i]) + apply("take", heard[i])) for i in count]
    scores = {}
    for i in count:
        for j in count:
            kinds, weight = look(i, j)
            along = apply("point_along", kinds) + w["point_weight.weight"][weight]
            hidden = np.maximum(0, apply("point_from", h[i]) + apply("point_to", h[j]) + along)
            scores[i, j] = float(apply("head", hidden)[0])
    return scores


def test_the_network_is_its_equations_node_by_node_whatever_is_beside_it():
    data = draw("bellman_ford", 2, 6, 2)
    coding, source = encode("bellman_ford", data["input"])
    target = torch.zeros(2, len(source), 8, dtype=torch.int64)
    network = built(lambda: Network(coding.sizes, SETTINGS_HERE), 2)
    logits = network(source.expand(2, *source.shape), target).detach()
    ids = {word: index for index, word in enumerate(coding.target.words, 4)}
    for row, text in enumerate(data["input"]):
        names = text.split(" | ")[0].split()
        for replica in range(2):
            for (i, j), score in brute_force(network, replica, text, coding).items():
                assert logits[replica, row, i, ids[names[j]]].item() == pytest.approx(score, abs=1e-10)
        assert logits[:, row, len(names) :].argmax(-1).eq(2).all()  # the end of the text


def compile_breadth_first(network: Network) -> None:
    """Set weights that search breadth-first, in units: whether a node is reached, rounds before it was, whether it is
    the source, and its position. The answer is the linked node that was reached first, of those the first in order."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        reached, waited, source, position = range(4)
        network.read.weight[0, [reached, source], 0] = 1
        network.read.weight[0, position, 1] = 1
        network.read.weight[0, waited, 0], network.read.bias[0, waited] = -1, 1
        network.send.weight[0, reached, reached] = 1
        network.take.weight[0, reached, reached] = 1
        network.keep.weight[0, reached, source] = -1  # what it reads makes it the source at first only
        network.keep.weight[0, waited, waited], network.keep.weight[0, waited, reached] = 1, -1
        network.point_to.weight[0, 0, waited], network.point_to.weight[0, 0, position] = -4, -1
        network.point_from.bias[0, 0] = 500
        network.point_along.weight[0, 0] = torch.tensor([500.0, 500.0, 502.0])
        network.head.weight[0, 0, 0] = 1


def test_weights_compiled_from_breadth_first_search_solve_graphs_of_all_sizes():
    """Expressibility: the search is within the network, whether or not training finds it (Saldyt and Kambhampati
    2025)."""
    data = draw("bfs", 2, 40, 2)
    coding, source = encode("bfs", data["input"])
    network = Network(coding.sizes, SETTINGS_HERE)
    compile_breadth_first(network)
    assert coding.texts(network.generate(source[None], 99)[0].numpy()) == data["output"].tolist()


def test_a_task_whose_answers_have_other_words_is_refused():
    train = {"input": np.array(["a b"], object), "output": np.array(["c"], object)}
    with pytest.raises(ModelError, match="answers with words of its input"):
        Network(make_encoding(TASK, train, SETTINGS).sizes, node_pointer.SETTINGS)
