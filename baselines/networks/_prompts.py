"""Prompts of in-context regression: which lines are pairs, and which is the query."""

from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import Sizes


def check_prompt(sizes: Sizes, network: str) -> tuple[int, int]:
    """The lines of a prompt and how many numbers an x has. `ModelError` if the inputs are no prompts of pairs."""
    if sizes.categories or len(sizes.shape) != 2 or sizes.shape[0] < 2 or sizes.shape[1] < 3:
        raise ModelError(
            f"{network} reads prompts, one numeric input of two axes: one line per pair (x, y, 1), zeros where there "
            "is none, and the query x as the last line"
        )
    return sizes.shape[0], sizes.shape[1] - 2


def split_lines(numbers: Tensor, count: int) -> Tensor:
    """Flat prompts (K, n, count * (width + 2)) as lines, (K, n, count, width + 2)."""
    return numbers.reshape(*numbers.shape[:-1], count, numbers.shape[-1] // count)
