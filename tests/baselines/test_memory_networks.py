"""The soft stack and tape against lists in Python, and the networks beside them on what needs such a memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import Sizes
from farshift.core.plugins import load_module
from torch import Tensor

from .side_by_side import built

STACK, TAPE = (load_module("baselines/networks", name, "network") for name in ("stack_rnn", "tape_rnn"))
REPLICAS, ROWS, STEPS, CELL = 2, 3, 40, 2


def drawn(actions: int) -> tuple[Tensor, Tensor]:
    """Actions (steps, K, n) and values (steps, K, n, cell)."""
    torch.manual_seed(actions)
    chosen = torch.randint(0, actions, (STEPS, REPLICAS, ROWS))
    return chosen, torch.randn(STEPS, REPLICAS, ROWS, CELL, dtype=torch.float64)


def test_certain_actions_make_the_soft_stack_a_stack() -> None:
    chosen, values = drawn(3)
    soft = torch.zeros(REPLICAS, ROWS, 1, CELL, dtype=torch.float64)
    plain: dict[tuple[int, int], list[list[float]]] = {at: [] for at in np.ndindex(REPLICAS, ROWS)}
    for action, value in zip(chosen, values, strict=True):
        soft = STACK.push_and_pop(soft, F.one_hot(action, 3).double(), value)
        for at, stack in plain.items():
            match int(action[at]):
                case 1:
                    stack.insert(0, value[at].tolist())
                case 2:
                    del stack[:1]
            assert soft[at][: len(stack)].tolist() == stack
            assert (soft[at][len(stack) :] == 0).all()
    assert max(map(len, plain.values())) > 3


@pytest.mark.parametrize("jumps", [False, True])
def test_certain_actions_make_the_soft_tape_a_circle_under_a_head(jumps: bool) -> None:
    count = 5 if jumps else 3
    chosen, values = drawn(count)
    lengths = torch.tensor([[1, 3, 6], [0, 4, 2]])
    room, around = 13, (2 * lengths + 1).clamp(min=7)
    moves = TAPE.compute_moves(lengths, 7, room, jumps)
    soft = torch.zeros(REPLICAS, ROWS, room, CELL, dtype=torch.float64)
    tapes = {at: [[0.0] * CELL for _ in range(int(around[at]))] for at in np.ndindex(REPLICAS, ROWS)}
    heads = dict.fromkeys(tapes, 0)
    for action, value in zip(chosen, values, strict=True):
        soft = TAPE.write_and_move(soft, moves, F.one_hot(action, count).double(), value)
        for at, tape in tapes.items():
            tape[heads[at]] = value[at].tolist()
            length = int(lengths[at])
            heads[at] = (heads[at] + [0, 1, -1, length, -length][int(action[at])]) % len(tape)
            assert soft[at][: len(tape)].tolist() == tape[heads[at] :] + tape[: heads[at]]
            assert (soft[at][len(tape) :] == 0).all()


def test_shares_of_actions_mix_what_each_would_have_made() -> None:
    torch.manual_seed(0)
    value, shares = torch.randn(1, 2, CELL).double(), torch.rand(1, 2, 5).double().softmax(dim=-1)
    stack, tape = torch.randn(1, 2, 4, CELL).double(), torch.randn(1, 2, 7, CELL).double()
    moves = TAPE.compute_moves(torch.tensor([[2, 3]]), 5, 7, jumps=True)
    few = shares[..., :3] / shares[..., :3].sum(dim=-1, keepdim=True)
    for result, certain, weights in (
        (STACK.push_and_pop(stack, few, value), lambda one: STACK.push_and_pop(stack, one, value), few),
        (
            TAPE.write_and_move(tape, moves, shares, value),
            lambda one: TAPE.write_and_move(tape, moves, one, value),
            shares,
        ),
    ):
        ones = torch.eye(weights.shape[-1]).double()
        expected = sum(weights[..., a, None, None] * certain(item.expand_as(weights)) for a, item in enumerate(ones))
        assert torch.allclose(result, expected, rtol=0, atol=1e-12)  # type: ignore[arg-type]


def test_the_stack_holds_as_much_as_was_read_and_the_tape_twice_that() -> None:
    sizes, source = Sizes(8, source=9), torch.full((1, 2, 50), 5)
    stack = STACK.Network(sizes, STACK.SETTINGS | {"width": 4}).start(source)["memory"]
    tape = TAPE.Network(sizes, TAPE.SETTINGS | {"width": 4}).start(source)["memory"]
    assert stack.shape == (1, 2, 51, 8)
    assert tape.shape == (1, 2, 101, 8)
    assert TAPE.Network(sizes, TAPE.SETTINGS | {"width": 4}).start(source[..., :3])["memory"].shape == (1, 2, 40, 8)


def test_what_is_taught_tells_a_machine_nothing_of_its_answer() -> None:
    network: Any = STACK.Network(Sizes(8, source=9), STACK.SETTINGS | {"width": 4})
    source = torch.randint(4, 9, (1, 2, 5))
    assert torch.equal(network(source, torch.full((1, 2, 4), 5)), network(source, torch.full((1, 2, 4), 6)))


@pytest.mark.parametrize(("file", "settings"), [(STACK, {}), (TAPE, {"jumps": False})], ids=["stack", "tape"])
def test_reversing_texts_of_up_to_six_is_learned_for_eighteen(file: Any, settings: dict[str, Any]) -> None:
    words, replicas = 6, 2
    sizes = Sizes(4 + words, source=4 + words, aligned=True)
    network = built(lambda: file.Network(sizes, file.SETTINGS | {"width": 24} | settings), replicas, torch.float32)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(0)
    for step in range(300):
        length = int(torch.randint(1, 7, (), generator=generator))
        source = torch.randint(4, 4 + words, (16, length), generator=generator).expand(replicas, -1, -1)
        logits = network(source, source)
        loss = F.cross_entropy(logits.flatten(0, 2), source.flip(-1).flatten())
        optimiser.zero_grad()
        (loss * replicas).backward()
        for group in optimiser.param_groups:
            group["lr"] = 0.01 * min(1, (step + 1) / 50)
        optimiser.step()
    long = torch.randint(4, 4 + words, (50, 18), generator=generator).expand(replicas, -1, -1)
    exact = (network.generate(long, 0) == long.flip(-1)).float().mean(dim=(1, 2))
    assert exact.max() > 0.95
