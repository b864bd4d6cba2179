"""A recurrent convolutional network with recall (deep thinking): the same convolutions are applied repeatedly.

Schwarzschild et al., NeurIPS 2021 (arXiv:2106.04537); recall, the input given to every iteration anew, Bansal et al.,
NeurIPS 2022 (arXiv:2202.05826), figure 2: a projection, then each iteration one convolution of the state and the input
together and two residual blocks, then an output block. All convolutions have a kernel of 3 and no bias. Longer inputs
are given more iterations. A ReLU follows the convolution with the recalled input, as in the released code; the output
block has the same width in both its convolutions, where the second halves it there. Here words are embedded (bits need
no embedding), the last map to the logits is of each token alone, and padding stays zero, so that a row does not depend
on the other rows of its batch.
"""

import math
from collections.abc import Mapping
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..encoding.encoding import PAD, Sizes
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from . import Transducer
from ._packed import Thinking, pack_texts

TASK = "aligned"
SETTINGS: dict[str, Any] = {"width": 64, "blocks": 2, "iterations": 30, "iterations_per_token": 2}
"""blocks: residual blocks of an iteration. iterations: in training, and the minimum in evaluation.
iterations_per_token: in evaluation, if that is more."""


class Convolution(nn.Module):
    """Tokens (K, n, T, inputs) and their neighbours to (K, n, T, outputs), zeros around them, and zero where `seen` is:
    a product for each of three places, added one place apart. Initial weights as torch.nn.Conv1d's."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.places = Linear(inputs, 3 * outputs, bias=False)
        reach = 1 / math.sqrt(3 * inputs)
        nn.init.uniform_(self.places.weight, -reach, reach)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        before, here, after = self.places(x).chunk(3, dim=-1)
        output: Tensor = here + F.pad(before, (0, 0, 1, -1)) + F.pad(after, (0, 0, -1, 1))
        return output * seen


class Block(nn.Module):
    """Two convolutions, added to their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = Convolution(width, width), Convolution(width, width)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x, seen)), seen))


class Network(Transducer):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.width, self.iterations = settings["width"], settings["iterations"]
        self.per_token = settings["iterations_per_token"]
        self.read = Embedding(sizes.source, self.width, padding=PAD)
        self.project = Convolution(self.width, self.width)
        self.recall = Convolution(2 * self.width, self.width)
        self.blocks = nn.ModuleList(Block(self.width) for _ in range(settings["blocks"]))
        self.first_out = Convolution(self.width, self.width)
        self.second_out = Convolution(self.width, self.width)
        self.head = Linear(self.width, sizes.outputs)

    def begin(self, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Source ids (K, n, T) to the input that is recalled, the first state, both (K, n, T, width), and `seen`, 1 at
        a token and 0 at padding, (K, n, T, 1)."""
        x = self.read(source)
        seen = (source != PAD).to(x.dtype)[..., None]
        return x, torch.relu(self.project(x, seen)), seen

    def think(self, x: Tensor, state: Tensor, seen: Tensor) -> Tensor:
        """The state after one more iteration."""
        state = torch.relu(self.recall(torch.cat([state, x], dim=-1), seen))
        for block in cast(list[Block], self.blocks):
            state = block(state, seen)
        return state

    def settled(self, state: Tensor, seen: Tensor) -> Tensor:
        """Inputs of the head, (K, n, T, width), from a state."""
        return torch.relu(self.second_out(torch.relu(self.first_out(state, seen)), seen))

    def features(self, source: Tensor, target: Tensor) -> Tensor:
        """Inputs of the head after all iterations, (K, n, T, width); the target is ignored."""
        x, state, seen = self.begin(source)
        if self.training:
            for _ in range(self.iterations):
                state = self.think(x, state, seen)
            return self.settled(state, seen)
        counts = ((source != PAD).sum(dim=-1) * self.per_token).clamp(min=self.iterations)
        if self._packs(source):
            return self.settled(self._packed(source[0], counts[0], state), seen)
        for done in range(int(counts.max()) if counts.numel() else 0):
            state = torch.where(done < counts[..., None, None], self.think(x, state, seen), state)
        return self.settled(state, seen)

    @staticmethod
    def _packs(source: Tensor) -> bool:
        """Whether all replicas read the same texts (K, n, T), without gradients or lower precision."""
        needs_autograd = torch.is_grad_enabled() or torch.is_autocast_enabled(source.device.type)
        return not needs_autograd and source.numel() > 0 and bool((source == source[:1]).all())

    def _packed(self, source: Tensor, counts: Tensor, like: Tensor) -> Tensor:
        """The states (K, n, T, width) of texts (n, T) after their own `counts` (n,) of iterations. like: a tensor whose
        number of replicas and dtype they have."""
        lying = pack_texts(source, counts, like.dtype)
        x, state, _ = self.begin(lying.ids.expand(len(like), 1, -1))
        blocks = [(block.first.places.weight, block.second.places.weight) for block in cast(list[Block], self.blocks)]
        thinking = Thinking(self.recall.places.weight, blocks, x[:, 0], lying.seen)
        return thinking.run(state[:, 0], lying.stops)[:, lying.places]
