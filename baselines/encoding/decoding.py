"""Greedy decoding of all replicas at once, for every autoregressive network."""

from typing import Protocol

import torch
from torch import Tensor

from .encoding import BOS, EOS, PAD, UNKNOWN

State = dict[str, Tensor]
"""The state of a decoder; the first two axes of every tensor are the replica and the row."""


class StepDecoder(Protocol):
    """A decoder that can advance one token at a time."""

    def start(self, source: Tensor) -> State:
        """The state before the first token, from source ids (K, n, S)."""
        ...

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (K, n, words) of the token after `token` (K, n), and the state after it."""
        ...


def shift_right(target: Tensor) -> Tensor:
    """The decoder's input when trained on `target` (.., T): BOS, then all tokens but the last."""
    return torch.cat([torch.full_like(target[..., :1], BOS), target[..., :-1]], dim=-1)


@torch.no_grad()
def decode_greedily(network: StepDecoder, source: Tensor, limit: int, aligned: bool = False) -> Tensor:
    """The most likely token at each step, (K, n, T) int64, PAD after the end.

    A row ends with EOS or at `limit` tokens; in an aligned task, at its source's length and never before.
    Rows that have ended in every replica are dropped from the batch when they are half of it.
    """
    lengths = (source != PAD).sum(dim=-1) if aligned else torch.full_like(source[..., 0], limit)
    longest = int(lengths.max()) if lengths.numel() else 0
    out = torch.full((*lengths.shape, longest), PAD, dtype=torch.int64, device=source.device)
    rows = torch.arange(source.shape[1], device=source.device)
    token = torch.full_like(lengths, BOS)
    alive = lengths > 0
    banned = torch.tensor([PAD, BOS, UNKNOWN] + ([EOS] if aligned else []), device=source.device)
    state = network.start(source)
    for position in range(longest):
        active = alive.any(dim=0)
        count = int(active.sum())
        if count == 0:
            break
        if 2 * count <= len(rows):
            state = {name: tensor[:, active] for name, tensor in state.items()}
            rows, token, alive, lengths = rows[active], token[:, active], alive[:, active], lengths[:, active]
        logits, state = network.step(state, token)
        token = logits.index_fill(-1, banned, -torch.inf).argmax(dim=-1)
        out[:, rows, position] = torch.where(alive, token, PAD)
        alive = alive & (token != EOS) & (lengths > position + 1)
    return out


def select_likeliest(logits: Tensor, source: Tensor) -> Tensor:
    """The most likely word of logits (K, n, S, words) for each token of source ids (K, n, S); PAD where the source has
    PAD."""
    logits[..., [PAD, BOS, EOS, UNKNOWN]] = -torch.inf
    return logits.argmax(dim=-1).masked_fill(source == PAD, PAD)
