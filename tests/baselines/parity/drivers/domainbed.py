"""DomainBed (Gulrajani and Lopez-Paz, ICLR 2021): the toy through its `Algorithm.update`.

Its Adam is replaced by gradient descent with momentum, as in the toy, its featurizer by the toy's hidden layer; packages
of pictures that it imports and these methods do not use are left out.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import draws, toy
from ..make import Made
from ..plain import replaced
from ..reference import Numbers

REPOSITORY = "facebookresearch/DomainBed"
COMMIT = "b93c22a1cfc3b2428398272c1a116c8de1f4139e"


class Hidden(nn.Sequential):
    """The toy's hidden layer, as a featurizer."""

    def __init__(self, *_: Any) -> None:
        super().__init__(nn.Linear(toy.INPUTS, toy.WIDTH), nn.ReLU())
        self.n_outputs = toy.WIDTH


def descent(parameters: Any, lr: float, **_: Any) -> torch.optim.Optimizer:
    """In place of Adam."""
    return torch.optim.SGD(parameters, lr, momentum=toy.MOMENTUM)


@contextmanager
def library() -> Iterator[ModuleType]:
    """Its module of algorithms, for networks in float64."""
    for name in ("torchvision", "torchvision.models", "torchvision.transforms", "timm"):
        sys.modules.setdefault(name, MagicMock())
    from domainbed import algorithms, networks

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        instead = {(networks, "Featurizer"): Hidden, (torch.optim, "Adam"): descent, (Tensor, "float"): Tensor.double}
        with replaced(instead):
            yield algorithms
    finally:
        torch.set_default_dtype(before)


Rows = list[tuple[Tensor, Tensor]]
"""A batch of each environment, as DomainBed draws them."""


def environments(step: int = 0) -> Rows:
    return list(zip(toy.inputs().split(toy.ROWS), toy.labels().split(toy.ROWS), strict=True))


def hparams(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"lr": toy.RATE, "lr_g": toy.RATE, "weight_decay": 0.0, "weight_decay_g": 0.0, "weight_decay_d": 0.0} | {
        "nonlinear_classifier": False,
        **given,
    }


def of_network(made: Any) -> list[nn.Parameter]:
    return [*made.network.parameters()]


def made_of(algorithms: ModuleType, name: str, given: Mapping[str, Any], count: int = toy.ENVIRONMENTS) -> Any:
    return getattr(algorithms, name)((toy.INPUTS,), toy.CLASSES, count, hparams(given))


def trained(
    name: str,
    given: Mapping[str, Any],
    loss: Callable[[dict[str, float]], float] = lambda said: said["loss"],
    weights: Callable[[Any], list[nn.Parameter]] = of_network,
    rows: Callable[[int], Rows] = environments,
    drawn: Callable[[int], Mapping[tuple[Any, str], Callable[..., Any]]] = lambda step: {},
    each: int = 1,
    before: Callable[[Any], Any] = lambda made: None,
) -> Callable[[], Numbers]:
    """Three steps of one of its classes, each of `each` updates.

    loss: of what an update says. weights: in our network's order. rows: of a step. drawn: what stands in for its random
    functions in a step, by module and name. before: what is done to it first."""

    def call() -> Numbers:
        with library() as algorithms:
            built = made_of(algorithms, name, given, len(rows(0)))
            toy.fill(weights(built))
            before(built)
            losses, parameters = [], []
            for step in range(toy.STEPS):
                with replaced(drawn(step)):
                    for _ in range(each):
                        output = built.update(rows(step))
                losses.append(loss(output))
                parameters.append(toy.flat(weights(built)))
        return {"losses": losses, "parameters": parameters}

    return call


def penalised(weight: float) -> Callable[[dict[str, float]], float]:
    """The minimised sum, of an update that says its parts."""
    return lambda said: said["loss"] + weight * said["penalty"]


def mixed(step: int) -> Mapping[tuple[Any, str], Callable[..., Any]]:
    """The circle of environments, and the shares of its pairs, in the circle's order."""
    circle = draws.order("pairs", step, toy.ENVIRONMENTS)
    shares = draws.shares("shares", step, 0.4, toy.ENVIRONMENTS)
    return {
        (torch, "randperm"): draws.dealt([circle]),
        (np.random, "beta"): draws.dealt([shares[position] for position in circle.tolist()]),
    }


def split(step: int) -> Mapping[tuple[Any, str], Callable[..., Any]]:
    """Which of two environments is held out: their last is our first."""
    return {(torch, "randperm"): draws.dealt([draws.order("split", step, 2).flip(0)])}


def cut(step: int) -> Mapping[tuple[Any, str], Callable[..., Any]]:
    """How many rows of each environment go to the first mixture."""
    places = (draws.even("cut", step, (toy.ENVIRONMENTS,)) * toy.ROWS).long()
    return {(np.random, "randint"): draws.dealt(places.tolist())}


def fish() -> Numbers:
    """Its environments come in our order; a step's loss is the mean of those that it takes."""
    seen: list[Tensor] = []
    entropy = F.cross_entropy

    def noted(*args: Any) -> Tensor:
        seen.append(entropy(*args))
        return seen[-1]

    def mean(said: dict[str, float]) -> float:
        result = torch.stack(seen).mean().item()
        seen.clear()
        return result

    def in_turn(step: int) -> Rows:
        given = environments()
        return [given[position] for position in draws.order("order", step, toy.ENVIRONMENTS).tolist()]

    with patch.object(F, "cross_entropy", noted):
        return trained("Fish", {"meta_lr": 0.4}, mean, rows=in_turn)()


def fishr() -> Numbers:
    """Its gradients of rows come from a package that fails under newer torch."""

    def of_rows(made: Any, logits: Tensor, y: Tensor) -> dict[str, Tensor]:
        named = dict(made.classifier.named_parameters())
        each = [
            torch.autograd.grad(F.cross_entropy(logits[row], y[row]), [*named.values()], create_graph=True)
            for row in range(len(y))
        ]
        return {
            name: torch.stack(result).flatten(1) for name, result in zip(named, zip(*each, strict=True), strict=True)
        }

    with library() as algorithms:
        absent = {(algorithms, "backpack"): of_rows, (algorithms, "extend"): lambda module: module}
        with replaced(absent | {(algorithms.Fishr, "_get_grads"): of_rows}):
            return trained("Fishr", {"lambda": 40.0, "penalty_anneal_iters": 1, "ema": 0.6})()


def adversarial(made: Any) -> list[nn.Parameter]:
    """Of DANN and CDANN: embeddings of classes last, where they are used."""
    parts = [made.featurizer, made.classifier, made.discriminator, *([made.class_embeddings] * made.conditional)]
    return [parameter for part in parts for parameter in part.parameters()]


ADVERSARY = {"lr_d": 0.05, "mlp_width": 4, "mlp_depth": 3, "mlp_dropout": 0.0, "beta1": 0.5}
OUR_ADVERSARY = {"lr_discriminator": 0.05, "discriminator_width": 4, "discriminator_depth": 3}


def dann(name: str, adversary: float, penalty: float, often: int) -> Callable[[], Numbers]:
    """One of its steps for the network after `often` for the discriminator are one of ours."""
    given = {"lambda": adversary, "grad_penalty": penalty, "d_steps_per_g_step": often} | ADVERSARY

    def from_the_first(made: Any) -> None:
        """It would begin in the middle of a turn."""
        made.update_count.fill_(often)

    return trained(name, given, lambda said: said["gen_loss"], adversarial, each=often + 1, before=from_the_first)


def ours_of_dann(adversary: float, penalty: float, often: int) -> dict[str, Any]:
    return {"adversary": adversary, "gradient_penalty": penalty, "discriminator_steps": often} | OUR_ADVERSARY


def sagnet() -> Numbers:
    """Its optimisers move the featurizer and the content head along the first, the style head alone along the other."""
    with library() as algorithms:
        built = made_of(algorithms, "SagNet", {"sag_w_adv": 0.3})
        rest = [*built.network_f.parameters(), *built.network_c.parameters()]
        own = [*built.network_s.parameters()]
        toy.fill([*rest, *own])
        x, y = toy.inputs(), toy.labels()
        orders = [draws.order(name, 0, len(x)) for name in ("content", "adversary", "style")]
        share = draws.even("share", 0, (len(x), 1))
        with replaced({(torch, "randperm"): draws.dealt(orders), (torch, "rand"): lambda *_: share}):
            risk = F.cross_entropy(built.forward_c(x), y)
            unsure = -F.log_softmax(built.forward_s(x), dim=1).mean(1).mean()
            style = F.cross_entropy(built.forward_s(x), y)
        return {
            "network": toy.loss_and_gradient(risk + built.weight_adv * unsure, rest),
            "style": toy.loss_and_gradient(style, own),
        }


FILE = "domainbed/algorithms.py"
SWITCHED = {"anneal_percent": 33}
TURNS = "its steps for the discriminator and for the network, which alternate, are on the same rows"

MADE = {
    "erm": Made(trained("ERM", {}), f"{FILE}: ERM", {}),
    "irm": Made(
        trained("IRM", {"irm_lambda": 3.0, "irm_penalty_anneal_iters": 1}), f"{FILE}: IRM", {"penalty": 3.0} | SWITCHED
    ),
    "vrex": Made(
        trained("VREx", {"vrex_lambda": 3.0, "vrex_penalty_anneal_iters": 1}),
        f"{FILE}: VREx",
        {"penalty": 3.0} | SWITCHED,
    ),
    "ib_erm": Made(
        trained("IB_ERM", {"ib_lambda": 3.0, "ib_penalty_anneal_iters": 1}),
        f"{FILE}: IB_ERM",
        {"penalty": 3.0} | SWITCHED,
    ),
    "ib_irm": Made(
        trained(
            "IB_IRM",
            {"irm_lambda": 3.0, "irm_penalty_anneal_iters": 1, "ib_lambda": 2.0, "ib_penalty_anneal_iters": 1},
        ),
        f"{FILE}: IB_IRM",
        {"penalty": 3.0, "bottleneck": 2.0} | SWITCHED,
    ),
    "group_dro": Made(trained("GroupDRO", {"groupdro_eta": 0.4}), f"{FILE}: GroupDRO", {"step_size": 0.4}),
    "coral": Made(trained("CORAL", {"mmd_gamma": 0.7}, penalised(0.7)), f"{FILE}: CORAL", {"penalty": 0.7}),
    "mmd": Made(trained("MMD", {"mmd_gamma": 0.7}, penalised(0.7)), f"{FILE}: MMD", {"penalty": 0.7}),
    "sd": Made(trained("SD", {"sd_reg": 0.3}, penalised(0.3)), f"{FILE}: SD", {"penalty": 0.3}),
    "and_mask": Made(
        trained("ANDMask", {"tau": 1.0}),
        f"{FILE}: ANDMask",
        {"agreement": 1.0},
        within=1e-6,
        remark="its mask is in float32",
    ),
    "sand_mask": Made(
        trained("SANDMask", {"tau": 0.2, "k": 0.01}),
        f"{FILE}: SANDMask",
        {"agreement": 0.2, "steepness": 0.01},
        within=1e-8,
        remark="it adds 1e-10 to the mean of a mask that it divides by",
    ),
    "causirl": Made(
        trained("CausIRL_CORAL", {"mmd_gamma": 0.7}, penalised(0.7), drawn=cut),
        f"{FILE}: CausIRL_CORAL",
        {"penalty": 0.7},
        remark="drawn as ours",
    ),
    "iga": Made(trained("IGA", {"penalty": 0.2}, penalised(0.2)), f"{FILE}: IGA", {"penalty": 0.2}),
    "rsc": Made(
        trained("RSC", {"rsc_f_drop_factor": 0.3, "rsc_b_drop_factor": 0.4}),
        f"{FILE}: RSC",
        {"muted_features": 0.3, "muted_rows": 0.4},
    ),
    "domain_mixup": Made(
        trained("Mixup", {"mixup_alpha": 0.4}, drawn=mixed), f"{FILE}: Mixup", {"alpha": 0.4}, remark="drawn as ours"
    ),
    "mldg": Made(
        trained(
            "MLDG",
            {"n_meta_test": 1, "mldg_beta": 0.6, "lr": 2 * toy.RATE},
            lambda said: 2 * said["loss"],
            rows=lambda step: environments()[:2],
            drawn=split,
        ),
        f"{FILE}: MLDG",
        {"meta_weight": 0.6, "inner_lr": 2 * toy.RATE, "first_order": True},
        "two_environments",
        remark="of two environments, whose sum it halves; its inner step is plain descent, in place of a fresh Adam's",
    ),
    "fish": Made(fish, f"{FILE}: Fish", {"meta_lr": 0.4}, remark="its environments are given in our random order"),
    "fishr": Made(
        fishr,
        f"{FILE}: Fishr",
        {"penalty": 40.0, "ema": 0.6} | SWITCHED,
        remark="gradients of rows are taken one by one, where it calls a package",
    ),
    "eqrm": Made(
        trained("EQRM", {"eqrm_quantile": 0.8, "eqrm_burnin_iters": 1, "eqrm_lr": 0.0}),
        f"{FILE}: EQRM",
        {"quantile": 0.8, "burn_in_percent": 33, "quantile_lr": 0.0},
        within=1e-6,
        remark="the quantile, whose gradient is another here; its bisection stops after 32 halvings",
    ),
    "dann": Made(dann("DANN", 0.7, 0.0, 2), f"{FILE}: DANN", ours_of_dann(0.7, 0.0, 2), remark=TURNS),
    "dann.penalty": Made(
        dann("DANN", 0.0, 0.5, 1),
        f"{FILE}: DANN",
        ours_of_dann(0.0, 0.5, 1),
        remark=f"{TURNS}; without an adversary, since its network also climbs the gradient penalty",
    ),
    "cdann": Made(
        dann("CDANN", 0.7, 0.0, 1),
        f"{FILE}: CDANN",
        ours_of_dann(0.7, 0.0, 1),
        remark=TURNS,
    ),
    "sagnet": Made(
        sagnet,
        f"{FILE}: SagNet",
        {"adversary": 0.3},
        "sagnet",
        remark="losses and gradients: it takes a step on each in turn, ours one on their sum",
    ),
}
