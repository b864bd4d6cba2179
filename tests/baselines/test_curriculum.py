"""Which rows of texts a step takes: a curriculum's easiest ones first, and meta-learning's that share their parts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from farshift.baselines.algorithms._rows import sample_by_weight
from farshift.baselines.algorithms.meta_compositional import spectrum_kernel
from farshift.baselines.replicas.rng import make_keys
from farshift.baselines.training.losses import cross_entropy, reduce_to_rows
from farshift.baselines.training.sampler import Batch
from farshift.baselines.training.trainer import Training
from torch import Tensor
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from .small_sequences import alone, check_alike, risk, training
from .small_stacks import batch_of, clock_of
from .toys import Rows, commands


def curriculum(steps: int = 8, count: int = 1, rows: Rows | None = None, **own: Any) -> Training:
    return training("transformer", "curriculum", [own] * count, steps, rows=rows)


def test_the_pace_is_the_competence_of_platanios() -> None:
    each = [{"start": 0.1, "until": 0.5, "power": 1.0}, {"start": 0.2, "until": 1.0, "power": 2.0}]
    built = training("transformer", "curriculum", each, 8)
    for step in range(8):
        built.in_stage = step
        share = built.stack.algorithm.share(clock_of(built))  # type: ignore[operator]
        linear = min(1.0, step * (1 - 0.1) / 4 + 0.1)
        root = min(1.0, (step * (1 - 0.2**2) / 8 + 0.2**2) ** 0.5)
        torch.testing.assert_close(share, torch.tensor([linear, root], dtype=torch.float64), rtol=0, atol=1e-12)


def test_a_batch_holds_only_rows_that_are_let_in() -> None:
    built = curriculum(start=0.25, until=1.0, batch_size=64)
    chosen = built.stack.algorithm.choose_rows(batch_of(built), clock_of(built))  # type: ignore[operator]
    length = built.data.lengths
    assert chosen.rows.unique().numel() == 9, "a quarter of 36 rows"
    assert int(length[chosen.rows].max()) == int(length.sort().values[8])
    assert torch.equal(chosen.target[0, :, 0], built.data.target[0, chosen.rows[0], 0])


def test_ties_in_length_go_by_the_input() -> None:
    built = curriculum(start=0.5, batch_size=4)
    data, order = built.data, built.stack.algorithm.order
    read = (data.inputs[0] != 0).sum(1)
    expected = sorted(range(36), key=lambda row: (int(data.lengths[row]), int(read[row]), row))
    assert order.tolist() == [expected]


def test_the_controls_begin_with_the_hardest_and_with_any_rows() -> None:
    easy, hard, random = (curriculum(order=order).stack.algorithm.order[0] for order in ("easy", "hard", "random"))
    length = curriculum().data.lengths
    assert torch.equal(length[hard], length[easy].flip(0))
    assert sorted(random.tolist()) == sorted(easy.tolist())
    assert not torch.equal(length[random], length[easy])


def test_rows_are_drawn_by_weight_within_their_share() -> None:
    weight = torch.tensor([[4.0, 1, 1, 2]])
    drawn = sample_by_weight(weight, make_keys(["a", "b"]), 60000, torch.tensor([0.75, 1.0]))
    result = torch.stack([torch.bincount(row, minlength=4) / 60000 for row in drawn])
    expected = torch.tensor([[4 / 6, 1 / 6, 1 / 6, 0], [0.5, 0.125, 0.125, 0.25]])
    torch.testing.assert_close(result, expected, rtol=0, atol=0.01)
    half = (
        torch.bincount(sample_by_weight(weight, make_keys(["a"]), 60000, torch.tensor([0.5625]))[0], minlength=4)
        / 60000
    )
    torch.testing.assert_close(half, torch.tensor([8 / 9, 1 / 9, 0, 0]), rtol=0, atol=0.01)


def test_one_step_descends_the_mean_loss_of_the_chosen_rows() -> None:
    built = curriculum(count=2, start=0.25, until=1.0)
    before = [alone(built.stack.network, position) for position in range(2)]
    chosen = built.stack.algorithm.choose_rows(batch_of(built), clock_of(built))  # type: ignore[operator]
    built.step()
    for position, plain in enumerate(before):
        rows = chosen.rows[position]
        inputs = [x[rows][None] for x in built.data.inputs]
        loss = risk(plain(*inputs), built.data.target[0, rows])
        gradients = torch.autograd.grad(loss, list(plain.parameters()), allow_unused=True)
        with torch.no_grad():
            for p, g in zip(plain.parameters(), gradients, strict=True):
                p -= 0.5 * (torch.zeros_like(p) if g is None else g)
        torch.testing.assert_close(built.losses[position], loss.detach(), rtol=0, atol=1e-10)
        check_alike(alone(built.stack.network, position), plain, 1e-10)


def test_training_with_all_rows_from_the_start_is_plain_training() -> None:
    own = curriculum(4, start=1.0).run().ended[0].network
    plain = training("transformer", "erm", [{}], 4).run().ended[0].network
    check_alike(own, plain, 0)


def test_a_self_taught_curriculum_goes_by_the_losses_of_a_first_stage() -> None:
    built = curriculum(10, count=2, difficulty="self-taught", teacher_percent=50)
    assert built.stages == (5, 5)
    for _ in range(4):
        built.step()
    assert torch.equal(built.stack.algorithm.choose_rows(batch_of(built), clock_of(built)).rows, batch_of(built).rows)  # type: ignore[operator]
    teacher, data = built.stack.network, built.data
    built.stack.algorithm.next_stage(1, teacher, data, built.stack.answer)
    logits = torch.cat([alone(teacher, position)(*(x[None] for x in data.inputs)) for position in range(2)])
    target = data.target.expand(2, -1, -1)
    losses = reduce_to_rows(cross_entropy(logits, target), Batch((), target, target))
    assert torch.equal(built.stack.algorithm.order, losses.argsort(dim=1, stable=True))


def test_a_heavy_row_keeps_its_share_of_what_is_let_in() -> None:
    rows = commands()
    rows.columns["weight"] = torch.ones(36).double().numpy()
    shortest = curriculum().stack.algorithm.order[0, 0]
    rows.columns["weight"][int(shortest)] = 36 - 35 / 2  # about half of a third
    built = curriculum(rows=rows, start=0.5, until=1.0, batch_size=4096)
    chosen = built.stack.algorithm.choose_rows(batch_of(built), clock_of(built)).rows  # type: ignore[operator]
    total = rows.columns["weight"].sum()
    expected = rows.columns["weight"][int(shortest)] / (0.5 * total)
    assert float((chosen == shortest).double().mean()) == pytest.approx(expected, abs=0.03)


EACH = [{"inner_lr": 0.3, "meta_weight": 1.0}, {"inner_lr": 0.05, "meta_weight": 0.5}]


def counted(ids: Sequence[int], grams: int) -> Counter[tuple[int, ...]]:
    real = [item for item in ids if item]
    sizes = range(1, grams + 1)
    return Counter(
        tuple(real[position : position + size]) for size in sizes for position in range(len(real) - size + 1)
    )


@pytest.mark.parametrize("grams", [1, 2, 3, 9])
def test_the_kernel_is_the_cosine_of_counted_n_grams(grams: int) -> None:
    torch.manual_seed(0)
    a, b = torch.randint(4, 7, (2, 3, 6)), torch.randint(4, 7, (2, 5, 4))
    a[:, 1, 2:], a[:, 2, :], b[:, 3, 1:] = 0, 0, 0
    result = spectrum_kernel(a, b, grams)
    for k in range(2):
        for i in range(3):
            for j in range(5):
                x, y = (counted(side.tolist(), grams) for side in (a[k, i], b[k, j]))
                dot = sum(x[gram] * y[gram] for gram in x)
                norm = (sum(n * n for n in x.values()) * sum(n * n for n in y.values())) ** 0.5
                assert float(result[k, i, j]) == pytest.approx(dot / norm if norm else 0.0, abs=1e-12)


def test_meta_test_rows_are_drawn_from_the_softmax_of_the_kernel() -> None:
    own = {"temperature": 0.5, "batch_size": 3600, "pool_rows": 500}
    built = training("transformer", "meta_compositional", [own])
    drawn = batch_of(built)
    result = built.stack.algorithm.similar(drawn, clock_of(built)).rows[0]  # type: ignore[operator]
    source = built.data.inputs[0][None]
    scores = spectrum_kernel(source[:, :1], source, 3)[0, 0] / 0.5
    scores[0] = -torch.inf
    ours = torch.bincount(result[drawn.rows[0] == 0], minlength=36) / 100
    torch.testing.assert_close(ours.double(), scores.softmax(0), rtol=0, atol=0.08)


def meta_loss(network: Any, train: Sequence[Tensor], test: Sequence[Tensor], own: Any, second: bool) -> Tensor:
    """L(theta) + w L(theta - a grad L(theta)) of one replica, each pair being the source and the target of a batch."""
    parameters = dict(network.named_parameters())
    loss = risk(network(*train), train[1][0])
    gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
    moved = {
        name: parameter - own["inner_lr"] * (gradient if second else gradient.detach())
        for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True)
    }
    after: Tensor = risk(functional_call(network, moved, tuple(test)), test[1][0])
    return loss + own["meta_weight"] * after


@pytest.mark.parametrize("network", ["transformer", "lstm"])
@pytest.mark.parametrize("second", [False, True], ids=["first order", "second order"])
def test_a_step_is_that_of_the_papers_objective_in_each_replica(network: str, second: bool) -> None:
    built = training(network, "meta_compositional", [own | {"second_order": second} for own in EACH], 3)
    for _ in range(2):
        before, drawn = [alone(built.stack.network, position) for position in range(2)], batch_of(built)
        test = built.stack.algorithm.similar(drawn, clock_of(built))  # type: ignore[operator]
        built.step()
        for position, plain in enumerate(before):
            pairs = [[x[position : position + 1] for x in item.inputs] for item in (drawn, test)]
            with sdpa_kernel(SDPBackend.MATH):
                loss = meta_loss(plain, *pairs, EACH[position], second)
                gradients = torch.autograd.grad(loss, list(plain.parameters()))
            torch.testing.assert_close(built.losses[position], loss.detach(), rtol=0, atol=1e-10)
            with torch.no_grad():
                for p, g in zip(plain.parameters(), gradients, strict=True):
                    p -= 0.5 * g
            check_alike(alone(built.stack.network, position), plain, 1e-10)
