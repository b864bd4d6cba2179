"""Convolution, batch normalisation and pooling with a replica axis are those of torch.nn; image networks learn."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.encoding.images import find_channel_axis, get_image_size, unflatten_images
from farshift.baselines.layers import norm
from farshift.baselines.layers.convolution import Conv2d, halve_by_max
from farshift.baselines.layers.norm import BatchNorm
from farshift.baselines.networks import cnn, grey_mlp, mlp, resnet
from farshift.baselines.replicas.rng import Rng, make_keys
from farshift.baselines.replicas.stacked import attach_rng, count_parameters, stack_networks
from farshift.core.errors import ModelError
from torch import Tensor, nn

from .side_by_side import agrees, built

SHAPES = [(8, 8), (2, 14, 14), (9, 7, 3), (28, 28)]
SMALL: dict[str, dict[str, Any]] = {
    "cnn": cnn.SETTINGS | {"widths": [5, 6], "width": 7},
    "resnet": resnet.SETTINGS | {"widths": [5, 6]},
}
NETWORKS = {"cnn": cnn.Network, "resnet": resnet.Network}


def close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=0, atol=1e-12)


def images(shape: tuple[int, ...], replicas: int, rows: int = 6, dtype: torch.dtype = torch.float64) -> Any:
    """Empty categories (K, n, 0) and flat pixels (K, n, width)."""
    draw = torch.Generator().manual_seed(1)
    pixels = torch.rand(replicas, rows, int(np.prod(shape)), generator=draw, dtype=dtype)
    return torch.zeros(replicas, rows, 0, dtype=torch.int64), pixels


def sizes(shape: tuple[int, ...], classes: int = 4) -> Sizes:
    return Sizes(classes, numbers=int(np.prod(shape)), shape=shape)


def paired(replicas: int, bias: bool, stride: int = 1) -> tuple[Conv2d, list[nn.Conv2d]]:
    """A stack, and torch's own layers with the same weights."""
    layer = built(lambda: Conv2d(3, 5, 3, bias=bias, stride=stride), replicas)
    plain = [nn.Conv2d(3, 5, 3, stride, 1, bias=bias).double() for _ in range(replicas)]
    for position, item in enumerate(plain):
        item.weight.data = layer.weight.data[position].clone()
        if item.bias is not None:
            item.bias.data = layer.bias.data[position].clone()
    return layer, plain


@pytest.mark.parametrize(("replicas", "bias", "stride"), [(1, True, 1), (3, True, 2), (3, False, 1)])
@pytest.mark.parametrize("way", ["forward", "_grouped"])
def test_a_convolution_and_its_gradients_are_those_of_torch_for_each_replica(
    way: str, replicas: int, bias: bool, stride: int
) -> None:
    layer, plain = paired(replicas, bias, stride)
    x = torch.randn(replicas, 4, 3, 9, 7, dtype=torch.float64, requires_grad=True)
    out = getattr(layer, way)(x)
    out.sin().sum().backward()
    for position, item in enumerate(plain):
        alone = x.detach()[position].clone().requires_grad_()
        expected = item(alone)
        expected.sin().sum().backward()
        assert close(out[position], expected)
        assert close(x.grad[position], alone.grad)
        assert close(layer.weight.grad[position], item.weight.grad)
        assert item.bias is None or close(layer.bias.grad[position], item.bias.grad)


def test_a_convolutions_initial_weights_reach_as_far_as_those_of_torch() -> None:
    layer, plain = Conv2d(16, 64, 3), nn.Conv2d(16, 64, 3)
    for ours, theirs in ((layer.weight, plain.weight), (layer.bias, plain.bias)):
        assert ours is not None
        assert ours.shape[1:] == theirs.shape
        assert ours.abs().max() <= 1 / 12
        assert ours.std().item() == pytest.approx(theirs.std().item(), rel=0.3)


def plain_norms(layer: BatchNorm) -> list[nn.BatchNorm2d]:
    result = []
    for weight, bias in zip(layer.weight.data, layer.bias.data, strict=True):
        item = nn.BatchNorm2d(len(weight)).double()
        item.weight.data, item.bias.data = weight.clone(), bias.clone()
        result.append(item)
    return result


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("joined", [False, True])
def test_batch_normalisation_is_that_of_torch_in_training_and_evaluation(
    joined: bool, replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = built(lambda: BatchNorm(5), replicas)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    plain = plain_norms(layer)
    if joined:
        monkeypatch.setattr(
            norm, "apply_per_replica", lambda normalised, *tensors: layer._joined(*normalised.args, *tensors)
        )
    for turn in range(3):
        x = (torch.randn(replicas, 4, 5, 3, 2, dtype=torch.float64) * 3 + turn).requires_grad_()
        out = layer(x)
        layer.zero_grad()
        out.sin().sum().backward()
        for position, item in enumerate(plain):
            alone = x.detach()[position].clone().requires_grad_()
            expected = item(alone)
            item.zero_grad()
            expected.sin().sum().backward()
            assert close(out[position], expected)
            assert close(x.grad[position], alone.grad)
            assert close(layer.weight.grad[position], item.weight.grad)
            assert close(layer.bias.grad[position], item.bias.grad)
            assert close(layer.running_mean[position], item.running_mean)
            assert close(layer.running_var[position], item.running_var)
    layer.eval()
    out = layer(x)
    assert all(close(out[position], item.eval()(x[position])) for position, item in enumerate(plain))


def test_batch_normalisation_takes_vectors_too() -> None:
    layer, x = built(lambda: BatchNorm(5), 2), torch.randn(2, 7, 5, dtype=torch.float64)
    out = layer(x)
    assert close(out.mean(dim=1), torch.zeros(2, 5, dtype=torch.float64))
    assert close(out[1], nn.BatchNorm1d(5).double()(x[1]))


def test_a_silent_noise_keeps_running_statistics_as_they_are() -> None:
    layer, x = built(lambda: BatchNorm(5), 2), torch.randn(2, 7, 5, 3, 3, dtype=torch.float64) + 2
    noise = Rng(make_keys(["a", "b"]))
    attach_rng(layer, noise)
    quiet = layer(x)
    assert torch.equal(layer.running_mean, torch.zeros(2, 5, dtype=torch.float64))
    assert close(quiet, x / (1 + layer.eps) ** 0.5)
    noise.at(0)
    layer(x)
    assert close(layer.running_mean, 0.1 * x.mean(dim=(1, 3, 4)))
    with noise.disabled():
        stored = layer.running_mean.clone()
        layer(x)
    assert torch.equal(layer.running_mean, stored)


def test_a_batch_of_one_value_cannot_be_normalised_in_training() -> None:
    layer = BatchNorm(5)
    with pytest.raises(ModelError, match="batch_size to 2 or more"):
        layer(torch.randn(1, 1, 5, 1, 1))
    assert layer(torch.randn(1, 1, 5, 2, 1)).isfinite().all()
    assert layer.eval()(torch.randn(1, 1, 5, 1, 1)).isfinite().all()


def test_an_image_of_odd_sides_is_halved_without_losing_a_pixel() -> None:
    x = torch.arange(2 * 15, dtype=torch.float64).view(2, 1, 1, 3, 5)
    assert halve_by_max(x)[1, 0, 0].tolist() == [[21, 23, 24], [26, 28, 29]]


@pytest.mark.parametrize(
    ("shape", "axis", "size"),
    [
        ((8, 9), None, (1, 8, 9)),
        ((24, 20, 3), 2, (3, 24, 20)),
        ((2, 14, 15), 0, (2, 14, 15)),
        ((3, 5, 3), 2, (3, 3, 5)),
    ],
)
def test_pixels_come_to_the_plane_of_their_channel(shape: Any, axis: int | None, size: Any) -> None:
    picture = np.random.default_rng(0).random((4, *shape))
    expected = picture[:, None] if axis is None else np.moveaxis(picture, axis + 1, 1)
    assert find_channel_axis(shape) == axis
    assert get_image_size(shape) == size == expected.shape[1:]
    assert np.array_equal(
        unflatten_images(torch.from_numpy(picture.reshape(2, 2, -1)), shape).flatten(0, 1).numpy(), expected
    )


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_image_network_reads_images_of_any_size(name: str, shape: tuple[int, ...]) -> None:
    network = built(lambda: NETWORKS[name](sizes(shape), SMALL[name]), 2).eval()
    assert network(*images(shape, 2)).shape == (2, 6, 4)
    assert agrees(network, *images(shape, 2))


def test_the_cnn_is_convolutions_pooling_and_dense_layers_of_torch() -> None:
    network = built(lambda: cnn.Network(sizes((9, 7, 3)), SMALL["cnn"]), 2)
    categories, pixels = images((9, 7, 3), 2)
    for position in range(2):
        x = pixels[position].view(6, 9, 7, 3).permute(0, 3, 1, 2)
        for layer in network.convolutions:
            x = F.conv2d(x, layer.weight[position], layer.bias[position], padding=1).relu()
            x = F.max_pool2d(x, 2, ceil_mode=True)
        x = F.linear(x.flatten(1), network.dense.weight[position], network.dense.bias[position]).relu()
        expected = F.linear(x, network.head.weight[position], network.head.bias[position])
        assert close(network(categories, pixels)[position], expected)


def test_the_resnets_first_filters_pass_their_inputs_on_and_blocks_add() -> None:
    network = stack_networks(
        [resnet.Network(sizes((8, 8)), SMALL["resnet"] | {"widths": [4, 4], "activation": "relu"})]
    ).eval()
    categories, pixels = images((8, 8), 1, dtype=torch.float32)
    group = network.body[1]
    x = torch.rand(1, 2, 4, 4, 4)
    once = 1 / (1 + 1e-5) ** 0.5
    assert torch.allclose(group(x), halve_by_max(x) * once * (1 + once**2), atol=1e-6)
    assert torch.allclose(
        network.encode(network.embed(categories, pixels)),
        network.body(unflatten_images(pixels, (8, 8))).mean(dim=(3, 4)),
    )
    parts = (9 * 4 + 8) + 3 * (9 * 16 + 8) + (4 * 4 + 4)
    assert count_parameters(network) == parts


@pytest.mark.parametrize("shape", [(2, 14, 14), (9, 7, 3)])
def test_a_network_that_cannot_see_colour_is_a_perceptron_on_the_sum_of_the_channels(shape):
    created = built(lambda: grey_mlp.Network(sizes(shape), grey_mlp.SETTINGS), 2)
    categories, pixels = images(shape, 2)
    axis = find_channel_axis(shape)
    every = pixels.reshape(2, 6, *shape)
    swapped = every.flip(2 + axis).flatten(2)
    assert close(created(categories, pixels), created(categories, swapped))
    grey = every.sum(2 + axis).flatten(2)
    plain = built(lambda: mlp.Network(Sizes(4, numbers=grey.shape[2]), mlp.SETTINGS), 2)
    plain.load_state_dict(created.state_dict())
    assert close(created(categories, pixels), plain(categories, grey))
