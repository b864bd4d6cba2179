"""MIRO: what the states of a network are held to, with weights of its own and with pretrained ones."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.miro import compute_block_states, compute_variational_bound

from .small_stacks import PLAIN, batch_of, begun, encode, head, near, weights


@pytest.mark.parametrize(("shape", "channels"), [((2, 4, 3, 5, 6), 2), ((2, 4, 7, 3), 3), ((2, 4, 3), 2)])
def test_the_bound_is_a_gaussians_with_a_variance_for_each_channel(shape: tuple[int, ...], channels: int) -> None:
    drawn = torch.Generator().manual_seed(0)
    state, before = torch.randn(2, *shape, generator=drawn, dtype=torch.float64)
    spread = torch.randn(2, 3, generator=drawn, dtype=torch.float64)
    result = compute_variational_bound(state, before, spread)
    for replica in range(2):
        total = 0.0
        for channel in range(3):
            v = math.log1p(math.exp(spread[replica, channel])) + 1e-5
            apart = (state - before)[replica].select(channels - 1, channel)
            total += ((apart**2 / v + math.log(v)) / 2).mean().item() / 3
        assert result[replica].item() == pytest.approx(total, abs=1e-12)


def test_after_plain_training_features_are_held_to_what_they_were() -> None:
    each = ({"penalty": 0.5}, {"penalty": 2.0})
    built = begun("miro", *each, common=PLAIN, steps=6)
    plain = begun("erm", {}, {}, common=PLAIN, steps=6)
    for _ in range(3):
        built.step(), plain.step()
    oracles = [weights(built, replica) for replica in range(2)]
    assert all(near(oracles[0][name], value) for name, value in weights(plain, 0).items())
    begin = math.log(math.expm1(0.1 - 1e-5))
    spreads = [torch.full((6,), begin, dtype=torch.float64, requires_grad=True) for _ in each]
    for _ in range(3):
        batch, before = batch_of(built), [weights(built, replica) for replica in range(2)]
        built.step()
        for k, (w, own) in enumerate(zip(before, each, strict=True)):
            x, y = batch.inputs[1][k], batch.target[k]
            z, v = encode(w, x), F.softplus(spreads[k]) + 1e-5
            apart = ((z - encode(oracles[k], x).detach()) ** 2 / v + v.log()).mean() / 2
            loss = F.cross_entropy(head(w, z), y) + own["penalty"] * apart
            assert built.losses[k].item() == pytest.approx(loss.item())
            slopes = torch.autograd.grad(loss, [*w.values(), spreads[k]])
            after = weights(built, k)
            for (name, value), slope in zip(w.items(), slopes[:-1], strict=True):
                assert near(after[name], value - 0.1 * slope)
            spreads[k] = (spreads[k] - 10 * 0.1 * slopes[-1]).detach().requires_grad_()
            learned = next(built.stack.algorithm.spreads.parameters())  # type: ignore[union-attr]
            assert near(learned[k], spreads[k])


def test_a_pretrained_network_is_held_to_its_pretrained_states(folders: dict[str, str]) -> None:
    pytest.importorskip("transformers")
    from .pretrained_stacks import start, trained

    for kind in ("vit", "resnet"):
        folder = folders[kind]
        alone, together = (trained(kind, folder, names, "miro") for names in (["b"], ["a", "b"]))
        assert alone.outcome.losses[0] == pytest.approx(together.outcome.losses[1], abs=1e-5)
        algorithm, pretrained = together.stack.algorithm, start(kind, folder)
        for name, value in algorithm.oracle.state_dict().items():  # type: ignore[union-attr, operator]
            if "body" in name and "num_batches" not in name:
                assert torch.equal(value[0], pretrained[name]), name
        inputs = tuple(x[:3].expand(2, *x[:3].shape) for x in together.data.inputs)
        result = compute_block_states(together.stack.network, inputs)[1]
        assert len(result) == len(list(algorithm.spreads.parameters())) > 1  # type: ignore[union-attr, arg-type]
        assert all(state.shape[:2] == (2, 3) for state in result)
