"""Several answers to each input, from a network that gives one token after another, for all replicas at once."""

from __future__ import annotations

import torch
from torch import Tensor

from ..encoding.decoding import State, StepDecoder
from ..encoding.encoding import BOS, EOS, PAD, UNKNOWN
from ..replicas.rng import derive_stream, draw_uniform


def _find_banned_tokens(source: Tensor, aligned: bool) -> Tensor:
    return torch.tensor([PAD, BOS, UNKNOWN, *([EOS] if aligned else [])], device=source.device)


def _compute_max_lengths(source: Tensor, limit: int, aligned: bool) -> Tensor:
    """The most tokens of each row's answer, (K, n)."""
    return (source != PAD).sum(dim=-1) if aligned else torch.full_like(source[..., 0], limit)


@torch.no_grad()
def sample_answers(
    network: StepDecoder, source: Tensor, limit: int, temperature: Tensor, keys: Tensor, aligned: bool = False
) -> Tensor:
    """One answer a row, each token drawn from the softmax of its logits over `temperature` (K,): ids (K, n, limit), PAD
    after the end. keys: (K,), of the draws."""
    lengths = _compute_max_lengths(source, limit, aligned)
    out = torch.full((*lengths.shape, limit), PAD, dtype=torch.int64, device=source.device)
    token, alive = torch.full_like(lengths, BOS), lengths > 0
    banned, state = _find_banned_tokens(source, aligned), network.start(source)
    for position in range(limit):
        if not bool(alive.any()):
            break
        logits, state = network.step(state, token)
        ends = (logits / temperature[:, None, None]).index_fill(-1, banned, -torch.inf).softmax(-1).cumsum(-1)
        drawn = (
            draw_uniform(derive_stream(keys, "token", position), token.shape[1:], ends.dtype)[..., None]
            * ends[..., -1:]
        )
        token = torch.searchsorted(ends, drawn, right=True)[..., 0].clamp(max=ends.shape[-1] - 1)
        out[..., position] = torch.where(alive, token, PAD)
        alive = alive & (token != EOS) & (lengths > position + 1)
    return out


@torch.no_grad()
def search_beams(
    network: StepDecoder, source: Tensor, limit: int, width: int, aligned: bool = False
) -> tuple[Tensor, Tensor]:
    """The likeliest answers that beam search finds: ids (K, n, width, T), PAD after the end, and the log-probability of
    each, (K, n, width), falling; -inf where there are fewer.

    A beam that has ended stays while it is among the likeliest. Log-probabilities are not divided by lengths."""
    replicas, rows = source.shape[:2]
    lengths = _compute_max_lengths(source, limit, aligned)
    longest = int(lengths.max()) if lengths.numel() else 0
    banned = _find_banned_tokens(source, aligned)
    out = torch.full((replicas, rows, width, longest), PAD, dtype=torch.int64, device=source.device)
    token = torch.full((replicas, rows * width), BOS, dtype=torch.int64, device=source.device)
    ended = (lengths == 0)[..., None].expand(-1, -1, width)
    state = {name: tensor.repeat_interleave(width, dim=1) for name, tensor in network.start(source).items()}
    scores: Tensor | None = None
    for position in range(longest):
        if bool(ended.all()):
            break
        logits, state = network.step(state, token)
        logs = logits.index_fill(-1, banned, -torch.inf).log_softmax(-1).view(replicas, rows, width, -1)
        if scores is None:
            scores = torch.full((replicas, rows, width), -torch.inf, dtype=logs.dtype, device=source.device)
            scores[..., 0] = 0  # all beams are one at first
        stays = torch.full_like(logs, -torch.inf)
        stays[..., PAD] = 0
        totals = (scores[..., None] + torch.where(ended[..., None], stays, logs)).flatten(2)
        scores, chosen = totals.topk(width, dim=2)
        before, words = chosen // logs.shape[-1], chosen % logs.shape[-1]
        out = out.gather(2, before[..., None].expand_as(out))
        out[..., position] = words
        ended = ended.gather(2, before) | (words == EOS) | (lengths[..., None] <= position + 1)
        token, state = words.flatten(1), _reorder_state(state, before)
    if scores is None:
        scores = torch.zeros(replicas, rows, width, device=source.device)
    return out, scores


def _reorder_state(state: State, before: Tensor) -> State:
    """The state of each beam (K, n, width), taken from the beam that it continues."""
    replicas, rows, width = before.shape
    places = (before + torch.arange(rows, device=before.device)[:, None] * width).flatten(1)
    replica = torch.arange(replicas, device=before.device)[:, None]
    return {name: tensor[replica, places] for name, tensor in state.items()}
