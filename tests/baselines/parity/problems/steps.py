"""Three steps of training on the whole toy, or what comes of them: of an algorithm, and of those that need other rows,
values in their state that are made up, or a part of the weights."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from farshift.baselines.algorithms.dividemix import Algorithm
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.training.algorithm import StepState
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Batch, Data
from farshift.baselines.training.trainer import Training
from torch import Tensor

from ...toys import recipe
from .. import draws, toy


def run_steps(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of training on the whole toy: the loss of each, and all weights after it. `losses` (3) and
    `parameters` (3, all weights in the network's own order)."""
    return steps(training(algorithm, settings))


def steps(made: Training, count: int = toy.STEPS) -> dict[str, Any]:
    """What `count` steps of a training come to."""
    losses, parameters = [], []
    for _ in range(count):
        made.step()
        loss = made.losses.item()
        # A stage that ends takes its losses along.
        losses.append(made.outcome.losses[0] if math.isnan(loss) else loss)
        parameters.append(toy.flat(made.stack.network.parameters()))
    return {"losses": losses, "parameters": parameters}


def data(x: Tensor | None = None, y: Tensor | None = None) -> Data:
    """The toy's rows, or others with their labels."""
    x = toy.inputs() if x is None else x
    y = toy.labels() if y is None else y
    nothing = torch.zeros(len(x), 0, dtype=torch.int64)
    even = torch.ones(1, len(x), dtype=torch.float64)
    return Data((nothing, x), y[None], torch.ones(len(x), dtype=torch.int64), even, toy.groups())


def training(
    algorithm: str,
    settings: Mapping[str, Any],
    given: Data | None = None,
    count: int = toy.STEPS,
    network: str = "mlp",
    sizes: Sizes | None = None,
    task: str = "classification",
) -> Training:
    """A training of one replica with the toy's weights, each of whose batches is all rows in their order."""
    given = data() if given is None else given
    plain = {"optimiser": "sgd", "momentum": toy.MOMENTUM, "lr": toy.RATE, "batch_size": 0}
    if network == "mlp":
        plain |= {"width": toy.WIDTH, "depth": 1}
    built = recipe(network, count, algorithm, **plain | dict(settings))
    stack = ReplicaStack(
        network,
        algorithm,
        [resolve_settings(built, "toy/toy", {})],
        [draws.NAME],
        sizes or Sizes(toy.CLASSES, numbers=toy.INPUTS),
        task,
        given,
        count,
        torch.float64,
    )
    toy.fill(stack.network.parameters())
    result = Training(stack, given, count)
    if result.sampler.environments:
        full = in_order(given, result)
        result.sampler.batches = lambda step: iter([(full, None)])  # type: ignore[method-assign]
    return result


def in_order(given: Data, made: Training) -> Batch:
    """All rows as equal shares of their environments."""
    places = torch.arange(len(given)).expand(len(made.stack), -1)
    return replace(made.sampler.select_rows(places), environments=made.sampler.environments)


def batches(made: Training) -> Iterator[Batch]:
    """The batch of each step."""
    for step in range(made.steps):
        for batch, _ in made.batches(step):
            yield batch


def run_averaged(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of an algorithm that reads validation rows and answers with a mean of weights. As `run_steps`, and the
    `means` (3, all weights) after each step."""
    built = training(algorithm, settings, replace(data(), held_out={"id_val": data(toy.inputs(1.3))}))
    losses, parameters, means = [], [], []
    for _ in range(toy.STEPS):
        built.step()
        losses.append(built.losses.item())
        parameters.append(toy.flat(built.stack.network.parameters()))
        means.append(toy.flat(built.stack.algorithm.mean.values))  # type: ignore[operator, union-attr]
    return {"losses": losses, "parameters": parameters, "means": means}


def clean() -> Tensor:
    """How likely each row's label is right, by the losses of the first and of the second network, (2, 18)."""
    return 0.5 + 0.49 * toy.wave((2, toy.ENVIRONMENTS * toy.ROWS), 0.6)


def run_divided(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of DivideMix, with made-up posteriors of clean labels. The weights of both networks after each step."""
    built = training(name, settings)
    built.stack.algorithm.clean.copy_(clean()[None])  # type: ignore[operator]
    with patch.object(Algorithm, "divide"):
        return {"parameters": steps(built)["parameters"]}


CLASSES, VALUES, WIDTH = 2, (3, 2), 4
"""VALUES: how many entities each of the two fields has. WIDTH: of their vectors."""


def list_entities() -> Tensor:
    """The entities of each row, (18, 2)."""
    position = torch.arange(toy.ENVIRONMENTS * toy.ROWS)
    return torch.stack([position % 7 % VALUES[0], position % 5 % VALUES[1]], dim=1)


def run_entities(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of training on two classes of the toy's rows, each of which names two entities. As `run_steps`."""
    given = data(y=toy.labels(CLASSES))
    sizes = Sizes(CLASSES, numbers=toy.INPUTS, categories=VALUES)
    given = replace(given, inputs=(list_entities(), given.inputs[1]))
    return steps(training(name, {"entity_width": WIDTH} | dict(settings), given, sizes=sizes))


def run_finished(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The weights that an algorithm ends with after three steps from the toy's. `parameters`, all of them."""
    built = training(name, settings)
    (stack,) = built.run().ended
    return {"parameters": toy.flat(stack.network.parameters())}


def run_held_to_start(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of MIRO, whose copy of the network at the start has the toy's weights too. As `run_steps`."""
    built = training(algorithm, settings)
    toy.fill(built.stack.algorithm.oracle.parameters())  # type: ignore[union-attr]
    return steps(built)


def run_importance(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What importance weighting has the toy's rows count by, towards the shifted rows of `run_adapted`. `weights` (18),
    1 on average."""
    nothing = torch.zeros(len(shifted_inputs()), 0, dtype=torch.int64)
    algorithm: Any = training(name, settings, replace(data(), unlabelled=(nothing, shifted_inputs()))).stack.algorithm
    return {"weights": algorithm.row_weight[0].tolist()}


ENVIRONMENTS = (6, 3, 2)


def uneven_labels() -> Tensor:
    """The labels (18,) of twelve, four and two rows of the classes."""
    return torch.tensor([0] * 12 + [1] * 4 + [2] * 2)


def uneven_rows() -> tuple[Tensor, Tensor, Tensor]:
    """The inputs, labels and environments of the first rows of each environment."""
    rows = torch.cat([toy.ROWS * number + torch.arange(count) for number, count in enumerate(ENVIRONMENTS)])
    return toy.inputs()[rows], toy.labels()[rows], toy.groups()[rows]


def run_rebalanced(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What rows of uneven classes or environments count in a loss: cRT's weights of its second stage, as shares; group
    reweighting's steps on batches in which the rows of each environment stand equally often. `weights` (18) of cRT;
    of group reweighting as `run_steps`."""
    if name == "crt":
        given = data(y=uneven_labels())
        stack = training(name, settings, given).stack
        again, _ = stack.algorithm.next_stage(0, stack.network, given, stack.answer)
        return {"weights": (again.weight[0] / again.weight[0].sum()).tolist()}
    x, y, groups = uneven_rows()
    built = training(name, settings, replace(data(x, y), group=groups))
    each = [
        torch.nonzero(groups == number)[:, 0].repeat(toy.ROWS // count) for number, count in enumerate(ENVIRONMENTS)
    ]
    full = replace(built.sampler.select_rows(torch.cat(each)[None]), environments=len(ENVIRONMENTS))
    built.sampler.batches = lambda step: iter([(full, None)])  # type: ignore[method-assign]
    return steps(built)


def run_row_weights(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What each row of the toy counts in a loss, as a share of all. `weights` (18)."""
    result = training(name, settings).stack.algorithm.inverse[0][toy.labels()]  # type: ignore[index]
    return {"weights": (result / result.sum()).tolist()}


def run_shifted(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps with rows of another place beside the toy's, without labels. As `run_steps`; of several stages of
    training, three steps of each."""
    given = data()
    given = replace(given, unlabelled=(given.inputs[0], toy.inputs(2.0)))
    count = toy.STEPS * int(settings.get("members", 1))
    return steps(training(name, settings, given, count), count)


def shifted_inputs() -> Tensor:
    """Inputs of as many shifted rows, (18, INPUTS)."""
    return toy.inputs(2.1) + 0.5


def run_adapted(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of an algorithm that also reads inputs of shifted rows: the toy's, by another phase. As `run_steps`."""
    nothing = torch.zeros(len(shifted_inputs()), 0, dtype=torch.int64)
    return steps(training(algorithm, settings, replace(data(), unlabelled=(nothing, shifted_inputs()))))


def noise() -> tuple[Tensor, Tensor]:
    """u (18, 1) and v (18, CLASSES) at first."""
    rows = toy.ENVIRONMENTS * toy.ROWS
    return 0.5 * toy.wave((rows, 1), 0.7), 0.5 * toy.wave((rows, toy.CLASSES), 1.7)


def run_sop(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of sparse over-parameterisation, from noise that is large enough to be seen. As `run_steps`, and `v`
    after each step."""
    built = training(name, settings)
    algorithm = built.stack.algorithm
    for buffer, value in zip((algorithm.u, algorithm.v), noise(), strict=True):
        buffer.copy_(value[None])  # type: ignore[operator]
    result: dict[str, Any] = {"losses": [], "parameters": [], "v": []}
    for _ in range(toy.STEPS):
        for key, value in steps(built, 1).items():
            result[key] += value
        result["v"].append(toy.flat([algorithm.v]))  # type: ignore[list-item]
    return result


def run_twice(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of a second stage of training, from the toy's weights, after three of a first one. As `run_steps`,
    and what each row then weighs."""
    built = training(name, settings, count=2 * toy.STEPS)
    for _ in range(toy.STEPS):
        built.step()
    toy.fill(built.stack.network.parameters())
    return steps(built) | {"weights": built.data.weight[0].double().tolist()}


def run_two_averages(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of two networks, whose averaged weights begin with others of the toy's. As `run_steps`, and `averages`
    after the last of them."""
    built = training(algorithm, settings)
    slow = built.stack.algorithm.slow
    toy.fill(slow.parameters(), 8)  # type: ignore[union-attr]
    return steps(built) | {"averages": toy.flat(slow.parameters())}  # type: ignore[union-attr]


def run_two_environments(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of training on the first two environments of the toy. As `run_steps`."""
    rows = 2 * toy.ROWS
    given = replace(data(toy.inputs()[:rows], toy.labels()[:rows]), group=toy.groups()[:rows])
    return steps(training(algorithm, settings, given))


WEAK_CLASSES = 2


def taught() -> Tensor:
    """The teacher's probabilities of the toy's rows, (18, CLASSES)."""
    return toy.wave((toy.ENVIRONMENTS * toy.ROWS, WEAK_CLASSES), 0.3).softmax(-1)


def run_weak(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The student's loss with its gradient, at the toy's weights, of two classes, with a teacher's answers given:
    after the weight of its own confidence has risen. `loss`: its value, and then its gradient."""
    given = data(y=toy.labels(WEAK_CLASSES))
    sizes = Sizes(WEAK_CLASSES, numbers=toy.INPUTS)
    built = training(name, dict(settings) | {"batch_size": len(given)}, given, 10, sizes=sizes)
    stack = built.stack
    stack.algorithm.weak.copy_(taught()[None])  # type: ignore[operator]
    batch = replace(in_order(given, built), environments=0)
    loss = stack.algorithm.loss(stack.network, batch, StepState(5, 10, 1, 5, stack.keys))
    return {"loss": toy.loss_and_gradient(loss, [*stack.network.parameters()])}


def run_weights(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `run_steps`, of an algorithm whose loss has another value in released code and the same gradient. The weights
    after each step."""
    return {"parameters": run_steps(name, settings)["parameters"]}


BINARY_CLASSES = 2


def run_binary(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of training on the toy with labels of two classes. As `run_steps`."""
    sizes = Sizes(BINARY_CLASSES, numbers=toy.INPUTS)
    return steps(training(name, settings, data(y=toy.labels(BINARY_CLASSES)), sizes=sizes))


TRANSITION = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.05, 0.7]], dtype=torch.float64)
"""Of the toy's three classes."""


def run_corrected(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of the second stage of a corrected loss, from the toy's weights, with a transition matrix that is
    given. As `run_steps`."""
    built = training(name, {"percentile": 100.0} | dict(settings), count=2 * toy.STEPS)
    for _ in range(toy.STEPS):
        built.step()
    built.stack.algorithm.transition.copy_(TRANSITION[None])  # type: ignore[operator]
    toy.fill(built.stack.network.parameters())
    return steps(built)


def run_sagnet(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The two losses of a step of style-agnostic features at the toy's weights: released code steps along parts of
    them in turn. `network`: the content head's loss plus the weighted adversary's, by all weights but the style
    head's; `style`: the style head's, by its own. Each is the loss and then its gradient."""
    built = training(name, settings)
    network, algorithm, batch = built.stack.network, built.stack.algorithm, next(batches(built))
    clock = StepState(0, built.steps, 0, 0, built.stack.keys)
    features = network.encode(network.embed(*batch.inputs)).detach()
    own = [*network.style_head.parameters()]
    rest = [*network.hidden.parameters(), *network.head.parameters()]
    return {
        "network": toy.loss_and_gradient(algorithm.loss(network, batch, clock), rest),
        "style": toy.loss_and_gradient(algorithm.style_loss(network, features, batch, clock), own),
    }
