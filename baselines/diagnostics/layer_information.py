"""Information by layer: how much of the input a layer keeps beside the class, with adaptive estimators.

    I(X; T | Y) = I(X; T) - I(Y; T)

for the output T of each hidden layer, in nats, over the training rows as the whole distribution. A deterministic layer
of continuous values keeps everything (log n for n different rows), so each estimator adds what it cannot resolve:

    kernels   T plus Gaussian noise of standard deviation NOISE times the layer's largest activation; the upper bound
              of Kolchinsky and Tracey,  I(X; T) <= - mean_i log mean_j exp(-|t_i - t_j|^2 / 2 s^2)
    bins      BINS bins with equally many distinct activations of the layer each (entropy-based adaptive bins); then
              I(X; T) is the entropy of the rows' binned activations

`given_class_1`, .. and `label_1`, .. are I(X; T | Y) and I(Y; T) by kernels, layer by layer; `binned_given_class_1`, ..
are I(X; T | Y) by bins; `given_class` and `binned_given_class` the least over the layers. The bound of Kawaguchi et al.
has I(X; T | Y) and the information of the layer's weights about the training rows, which is not measured here.
Chelombiev et al. let noise and bins scale with the activations. That it is the noise's standard deviation which is
proportional to the largest one, so that no estimate depends on the activations' unit, and the amounts are ours.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ._subject import Subject

CITATION = (
    "Kawaguchi, Deng, Ji and Huang, How Does Information Bottleneck Help Deep Learning?, ICML 2023 (arXiv:2305.18887); "
    "Chelombiev, Houghton and O'Donnell, Adaptive Estimators Show Information Compression in Deep Neural Networks, "
    "ICLR 2019 (arXiv:1902.09037); Kolchinsky and Tracey, Estimating Mixture Entropy with Pairwise Distances, Entropy "
    "2017 (arXiv:1706.02419)"
)
TASKS = ("classification",)
NOISE = 0.05
BINS = 30


def measure(subject: Subject) -> dict[str, Tensor]:
    """given_class and binned_given_class, and by layer with label: each (K,), in nats."""
    values: dict[str, Tensor] = {}
    for number, layer in enumerate(subject.layers, start=1):
        total, within = measure_information(bound_information, blur(layer), subject.classes)
        values |= {f"given_class_{number}": within, f"label_{number}": total - within}
        _, within = measure_information(compute_entropy, bin_adaptively(layer), subject.classes)
        values[f"binned_given_class_{number}"] = within
    for name in ("given_class", "binned_given_class"):
        values[name] = torch.stack([values[f"{name}_{number + 1}"] for number in range(len(subject.layers))]).amin(0)
    return values


def measure_information(estimate: Callable[[Tensor], Tensor], values: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """I(X; T) and I(X; T | Y), each (K,), of values (K, n, width), with an estimator of I(X; T)."""
    parts = [values[:, classes == label] for label in torch.unique(classes).tolist()]
    within = torch.stack([estimate(part) * part.shape[1] for part in parts]).sum(0) / values.shape[1]
    return estimate(values), within


def blur(layer: Tensor) -> Tensor:
    """A layer (K, n, width) in units of its noise's standard deviation."""
    return layer / (NOISE * layer.abs().amax((1, 2), keepdim=True)).clamp(min=torch.finfo(layer.dtype).tiny)


def bound_information(values: Tensor) -> Tensor:
    """The upper bound on I(X; T) for T the values (K, n, width) plus standard normal noise, (K,)."""
    distances = torch.cdist(values, values, compute_mode="donot_use_mm_for_euclid_dist")
    return math.log(values.shape[1]) - (-distances.square() / 2).logsumexp(2).mean(1)


def bin_adaptively(layer: Tensor) -> Tensor:
    """The bin of each activation of a layer (K, n, width): equally many distinct values in each bin."""
    binned = []
    for own in layer:
        distinct = torch.unique(own)
        edges = distinct[torch.arange(1, BINS, device=own.device) * len(distinct) // BINS]
        binned.append(torch.bucketize(own.contiguous(), torch.unique(edges), right=True))
    return torch.stack(binned)


def compute_entropy(binned: Tensor) -> Tensor:
    """The entropy of the rows of (K, n, width) integers in nats, (K,)."""
    shares = [torch.unique(own, dim=0, return_counts=True)[1].double() / len(own) for own in binned]
    return torch.stack([torch.special.entr(share).sum() for share in shares])
