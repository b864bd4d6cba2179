"""Iterations of a convolutional network over tokens, without gradients and without computing padding.

The rows are stored end to end, with one place of zeros between two, so that nothing is computed for padding; those that
need the fewest iterations come first, so that each iteration computes only the rows behind a place. A convolution is
three products, each added to the result of the one before. The contribution of the recalled input is computed once, not
in every iteration. The order of sums differs from that in training, so logits agree up to rounding, not bitwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..encoding.encoding import PAD


@dataclass(frozen=True)
class PackedTexts:
    """n texts end to end, which all replicas read. ids: (places,), PAD between two. seen: (places, 1), 1 at a token.
    places: the place of each token of the texts (n, T), 0 for padding, where there is a zero. stops: (iterations,
    place) in ascending order: everything behind the place has that many iterations, and the part before the next place
    no more."""

    ids: Tensor
    seen: Tensor
    places: Tensor
    stops: list[tuple[int, int]]


def pack_texts(source: Tensor, counts: Tensor, dtype: torch.dtype) -> PackedTexts:
    """Pack texts (n, T), padded at their ends, each with its own number of iterations, `counts` (n,)."""
    order = counts.argsort(stable=True)
    real = source[order] != PAD
    lengths = real.sum(dim=1)
    ends = (lengths + 1).cumsum(0)
    starts = ends - lengths
    sorted_places = torch.where(real, starts[:, None] + torch.arange(source.shape[1], device=source.device), 0)
    ids = source.new_full((int(ends[-1]) + 1,), PAD)
    ids[sorted_places[real]] = source[order][real]
    places = torch.empty_like(sorted_places)
    places[order] = sorted_places
    each, rows = torch.unique_consecutive(counts[order], return_counts=True)
    first = rows.cumsum(0) - rows
    stops = list(zip(each.tolist(), (starts[first] - 1).tolist(), strict=True))
    return PackedTexts(ids, (ids != PAD).to(dtype)[:, None], places, stops)


class ConvolutionProducts:
    """A convolution's products. weight: (K, 3 outputs, inputs): for the place before, here, and after."""

    def __init__(self, weight: Tensor) -> None:
        self.before, self.here, self.after = (part.transpose(1, 2).contiguous() for part in weight.chunk(3, dim=1))

    def __call__(self, x: Tensor, seen: Tensor, more: Tensor | None = None) -> Tensor:
        """x (K, places, inputs), and what is added to it, (K, places, outputs), to (K, places, outputs)."""
        if len(x) == 1:  # torch's plain matrix product is much faster than a batched one with a batch of one
            out = torch.mm(x[0], self.here[0]) if more is None else torch.addmm(more[0], x[0], self.here[0])
            out[1:].addmm_(x[0, :-1], self.before[0])
            out[:-1].addmm_(x[0, 1:], self.after[0])
            return out.mul_(seen)[None]
        out = torch.bmm(x, self.here) if more is None else torch.baddbmm(more, x, self.here)
        out[:, 1:].baddbmm_(x[:, :-1], self.before)
        out[:, :-1].baddbmm_(x[:, 1:], self.after)
        return out.mul_(seen)


class Thinking:
    """One iteration after the other, on packed states."""

    def __init__(self, recall: Tensor, blocks: Sequence[tuple[Tensor, Tensor]], x: Tensor, seen: Tensor) -> None:
        """recall: the weight of the convolution of the state and the recalled input x (K, places, width) together;
        blocks: the two weights of each residual block."""
        width = x.shape[-1]
        self.recall = ConvolutionProducts(recall[..., :width])
        self.recalled = ConvolutionProducts(recall[..., width:])(x, seen)
        self.blocks = [(ConvolutionProducts(first), ConvolutionProducts(second)) for first, second in blocks]
        self.seen = seen

    def step(self, state: Tensor, start: int) -> Tensor:
        """The state (K, places behind `start`, width) after one more iteration."""
        seen = self.seen[start:]
        state = self.recall(state, seen, self.recalled[:, start:]).relu_()
        for first, second in self.blocks:
            state = second(first(state, seen).relu_(), seen, state).relu_()
        return state

    def run(self, state: Tensor, stops: Sequence[tuple[int, int]]) -> Tensor:
        """The states (K, places, width) after each row's own iterations."""
        result = torch.empty_like(state)
        done = start = 0
        for count, stop in stops:
            result[:, start:stop] = state[:, : stop - start]
            state, start = state[:, stop - start :], stop
            for _ in range(done, count):
                state = self.step(state, start)
            done = count
        result[:, start:] = state
        return result
