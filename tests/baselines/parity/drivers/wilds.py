"""WILDS' examples (Sagawa et al., ICLR 2022): their objectives over labelled and shifted rows, on the toy's layers."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..plain import descended, network, on_cpu, taken
from ..problems.predictions import view
from ..problems.steps import shifted_inputs as shifted
from ..reference import Numbers

REPOSITORY = "p-lambda/wilds"
COMMIT = "472677590de351857197a9bf24958838c39c272b"
ADVERSARY = {"lr_discriminator": 0.6 * toy.RATE, "discriminator_width": 4, "discriminator_depth": 2}


def in_groups(groups: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
    """The groups there are, the places of each, and how many it has."""
    which = groups.unique()
    places = [(groups == item).nonzero()[:, 0] for item in which]
    return which, places, torch.tensor([len(item) for item in places])


def examples(name: str) -> Any:
    """One of its classes of algorithms; packages around them, which the objectives do not use, are left out."""
    parts: dict[str, dict[str, Any]] = {
        "algorithms.single_model_algorithm": {"SingleModelAlgorithm": object},
        "models.initializer": {"initialize_model": None},
        "optimizer": {"initialize_optimizer_with_model_params": None},  # codespell:ignore optimizer
        "losses": {"initialize_loss": None},
        "utils": {"concat_input": None, "detach_and_clone": torch.clone},
        "wilds": {},
        "wilds.common": {},
        "wilds.common.utils": {"split_into_groups": in_groups},
    }
    absent = {}
    for part, content in parts.items():
        absent[part] = ModuleType(part)
        vars(absent[part]).update(content)
    with patch.dict(sys.modules, absent):
        return getattr(
            import_module(f"algorithms.{name}"), {"fixmatch": "FixMatch"}.get(name, name[0].upper() + name[1:])
        )


def cross_entropy() -> SimpleNamespace:
    """In place of its loss."""
    return SimpleNamespace(compute=lambda predicted, target, return_dict: F.cross_entropy(predicted, target))


def trained(
    name: str, weight: float, answers: Callable[[nn.Module, nn.Module], dict[str, Any]], **more: Any
) -> Callable[[], Numbers]:
    """Three steps down an objective. answers: what it is given, of the featurizer and the head."""

    def call() -> Numbers:
        kind = examples(name)
        parts = nn.Linear(toy.INPUTS, toy.WIDTH), nn.Linear(toy.WIDTH, toy.CLASSES)
        featurizer, head = nn.Sequential(parts[0], nn.ReLU()).double(), parts[1].double()
        weights = [*featurizer.parameters(), *head.parameters()]
        toy.fill(weights)
        descent = torch.optim.SGD(weights, toy.RATE, toy.MOMENTUM)
        built = SimpleNamespace(loss=cross_entropy(), is_training=True, penalty_weight=weight, device="cpu")
        built.save_metric_for_logging = lambda *_: None
        vars(built).update(more)
        for function in ("safn_loss", "hafn_loss", "coral_penalty"):
            if hasattr(kind, function):
                setattr(built, function, getattr(kind, function).__get__(built))
        if name == "AFN":
            built.afn_loss = built.hafn_loss if built.r else built.safn_loss
        losses, parameters = [], []
        for _ in range(toy.STEPS):
            with patch.object(torch, "zeros", partial(torch.zeros, dtype=torch.double)):
                loss = kind.objective(built, answers(featurizer, head))
            descent.zero_grad()
            loss.sum().backward()
            descent.step()
            losses.append(loss.item())
            parameters.append(toy.flat(weights))
        return {"losses": losses, "parameters": parameters}

    return call


def apart(featurizer: nn.Module, head: nn.Module) -> dict[str, Any]:
    source, target = featurizer(toy.inputs()), featurizer(shifted())
    return {"y_pred": head(source), "y_true": toy.labels(), "features": source, "unlabeled_features": target}


def joined(featurizer: nn.Module, head: nn.Module) -> dict[str, Any]:
    """All labelled rows are one group, and the shifted ones another."""
    features = torch.cat([featurizer(toy.inputs()), featurizer(shifted())])
    rows = len(toy.labels())
    group = (torch.arange(2 * rows) >= rows).long()
    return {"y_pred": head(features[:rows]), "y_true": toy.labels(), "features": features, "g": group}


def dann() -> Numbers:
    """Its discriminator has the layers of ours. It weights the loss of domains, which is here noted without."""
    network = import_module("models.domain_adversarial_network").DomainAdversarialNetwork
    featurizer = nn.Sequential(nn.Linear(toy.INPUTS, toy.WIDTH), nn.ReLU()).double()
    featurizer.d_out = toy.WIDTH  # type: ignore[assignment]
    built = network(featurizer, nn.Linear(toy.WIDTH, toy.CLASSES), 2)
    built.domain_classifier = nn.Sequential(nn.Linear(toy.WIDTH, 4), nn.ReLU(), nn.Linear(4, 2))
    built = built.double()
    weights = [p for part in (featurizer, built.classifier, built.domain_classifier) for p in part.parameters()]
    toy.fill(weights)
    descent = torch.optim.SGD(weights, toy.RATE, toy.MOMENTUM)
    x, rows = torch.cat([toy.inputs(), shifted()]), len(toy.labels())
    losses, parameters = [], []
    seen: dict[str, float] = {}
    kind = examples("DANN")
    for _ in range(toy.STEPS):
        logits, domains = built(x)
        seen.clear()
        about = SimpleNamespace(loss=cross_entropy(), domain_loss=cross_entropy(), is_training=True)
        about.penalty_weight = 0.6
        about.save_metric_for_logging = lambda _, name, value: seen.update({name: value.item()})
        given: Mapping[str, Any] = {
            "y_pred": logits[:rows],
            "y_true": toy.labels(),
            "domains_pred": domains,
            "domains_true": (torch.arange(2 * rows) >= rows).long(),
        }
        loss = kind.objective(about, dict(given))
        descent.zero_grad()
        loss.backward()
        descent.step()
        losses.append(sum(seen.values()))
        parameters.append(toy.flat(weights))
    return {"losses": losses, "parameters": parameters}


def fixmatch() -> Numbers:
    """Labels that the network gives are kept as its own function keeps them."""
    given: dict[str, Any] = {"torch": torch, "F": F, "multiclass_logits_to_pred": lambda logits: logits.argmax(-1)}
    file, name = "../wilds/common/metrics/all_metrics.py", "pseudolabel_multiclass_logits"
    built = SimpleNamespace(loss=cross_entropy(), device="cpu", fixmatch_lambda=0.7, confidence_threshold=0.5)
    built.process_pseudolabels_function = taken(file, name, **given)[name]
    built.grouper = SimpleNamespace(metadata_to_group=lambda metadata: metadata)
    built.save_metric_for_logging = lambda results, name, value: results.update({name: value})
    built.model = network()

    def loss(step: int) -> Tensor:
        none, target = torch.zeros(()), shifted()
        batch, unlabelled = (toy.inputs(), toy.labels(), none), ((target, view("strong", target)), none)
        result: Tensor = kind.objective(built, kind.process_batch(built, batch, unlabelled))
        return result

    with on_cpu(configs={}, configs__supported={"process_pseudolabels_functions": {}}):
        kind = examples("fixmatch")
        return descended([built.model], loss)


FOLDER = "examples"

MADE = {
    "afn": Made(
        trained("AFN", 0.4, apart, delta_r=0.7, r=0.0),
        f"{FOLDER}/algorithms/AFN.py: AFN",
        {"penalty": 0.4, "step": 0.7},
        "adapted",
    ),
    "afn.hard": Made(
        trained("AFN", 0.1, apart, delta_r=0.7, r=3.0),
        f"{FOLDER}/algorithms/AFN.py: AFN",
        {"penalty": 0.1, "radius": 3.0},
        "adapted",
    ),
    "coral_target": Made(
        trained("deepCORAL", 0.7, joined), f"{FOLDER}/algorithms/deepCORAL.py: DeepCORAL", {"penalty": 0.7}, "adapted"
    ),
    "dann_target": Made(
        dann,
        f"{FOLDER}/algorithms/DANN.py: DANN",
        {"adversary": 0.6} | ADVERSARY,
        "adapted",
        remark="two domains, and a discriminator without normalisation; its weight of the loss is our rate",
    ),
    "fixmatch": Made(
        fixmatch,
        f"{FOLDER}/algorithms/fixmatch.py: FixMatch, wilds/common/metrics/all_metrics.py: pseudolabel_multiclass_logits",
        {"weight": 0.7, "threshold": 0.5},
        "viewed",
    ),
}
