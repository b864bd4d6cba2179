"""step_by_step: chaining local conditionals is exact on a chain, where the direct answer is not, and each place of a
window's text is equally often trained."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from farshift.baselines.algorithms.step_by_step import Algorithm, draw_place
from farshift.core.errors import ModelError
from torch import Tensor, nn

FLIP = 0.2


class LocalChain(nn.Module):
    """Knows a chain of three variables by neighbours only: a value is that of a known neighbour but for one in five, and
    else even; after the first variable it names the second, and then the third."""

    def forward(self, _: Tensor, numbers: Tensor) -> Tensor:
        known, queries = numbers[..., :3], numbers[..., 3:6]
        beside = queries @ torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
        return (0.5 + (0.5 - FLIP) * (known * beside).sum(-1, keepdim=True)).clamp(FLIP, 1 - FLIP)

    def namer(self, x: Tensor) -> Tensor:
        return torch.tensor([0.0, 100.0, 50.0]).expand(*x.shape[:-1], 3)


def estimate(estimator: str, samples: int = 4000) -> list[float]:
    """P(third = 1) where the first is 1, and where it is 0."""
    settings = {"estimator": estimator, "samples": samples, "longest": 3}
    fields = 3 if estimator == "scaffolded" else 2
    algorithm: Any = Algorithm(settings, SimpleNamespace(sizes=SimpleNamespace(numbers=3 * fields, categories=())))
    rows = torch.tensor([[1.0, 0, 0, 0, 0, 1, 0, 1, 0], [-1.0, 0, 0, 0, 0, 1, 0, 1, 0]])[None, :, : 3 * fields]
    return algorithm.logits(LocalChain(), torch.zeros(1, 2, 0), rows)[0, :, 0].tolist()


@pytest.mark.parametrize("estimator", ["scaffolded", "free"])
def test_a_chain_of_local_inferences_gives_the_conditional_probability(estimator):
    stays = (1 - FLIP) ** 2 + FLIP**2
    assert estimate(estimator) == pytest.approx([stays, 1 - stays], abs=0.03)


def test_the_direct_answer_for_variables_never_seen_together_is_the_marginal():
    assert estimate("direct") == [0.5, 0.5]


def test_a_place_of_the_text_is_drawn_evenly_and_knows_only_what_comes_before():
    known = torch.tensor([1.0, -1.0, 0.0, 0.0]).expand(1, 6000, 4)
    query = torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(1, 6000, 4)
    torch.manual_seed(0)
    prefix, following = draw_place(known, query, torch.rand(1, 6000, 4), torch.rand(1, 6000))
    assert following.mean(1)[0].tolist() == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3], abs=0.03)
    assert bool(((prefix == 0) | (prefix == known)).all())
    assert not bool((prefix * following).any())
    assert bool((prefix == known)[following[..., 3] > 0].all())


def test_inputs_that_are_no_windows_are_refused():
    with pytest.raises(ModelError, match="2 numbers a variable"):
        Algorithm({"estimator": "free"}, SimpleNamespace(sizes=SimpleNamespace(numbers=5, categories=())))
