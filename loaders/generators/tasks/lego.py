"""LEGO: chains of variables, each equal to the previous one or its negative (Zhang et al. 2022, arXiv 2206.04301).

As used for length generalisation by Kazemnejad et al., NeurIPS 2023 (arXiv 2305.19466): the size is the number of
variables, and the question is the value of one in the second half of the chain. The draws are new.
"""

from __future__ import annotations

from dataclasses import dataclass

from ._contract import Draws, Examples, require

_NAMES = 100
"""Variables are named v0 .. v99, in random order."""


@dataclass(frozen=True)
class _Chain:
    ordered: str
    """The clauses in the order of the chain, and the question."""
    shuffled: str
    resolved: list[str]
    """Each variable and its value, in the order of the chain, up to the one in the question."""

    @property
    def answer(self) -> str:
        return self.resolved[-1].split()[1]


def chain(draws: Draws, length: int) -> Examples:
    """The value of one variable; the clauses are in the order of the chain."""
    chains = _draw_chains(draws, length)
    return Examples([item.ordered for item in chains], [item.answer for item in chains])


def chain_shuffled(draws: Draws, length: int) -> Examples:
    """`chain` with the clauses in random order."""
    chains = _draw_chains(draws, length)
    return _make_shuffled_examples(chains, [item.answer for item in chains])


def chain_shuffled_scratchpad(draws: Draws, length: int) -> Examples:
    """`chain_shuffled`, with the value of every variable up to the one in the question, in the order of the chain; the
    last value is the answer."""
    chains = _draw_chains(draws, length)
    return _make_shuffled_examples(chains, [" ; ".join(item.resolved) for item in chains])


def _make_shuffled_examples(chains: list[_Chain], outputs: list[str]) -> Examples:
    return Examples([item.shuffled for item in chains], outputs, items=[item.ordered for item in chains])


def _draw_chains(draws: Draws, length: int) -> list[_Chain]:
    require(length <= _NAMES, length, f"there are {_NAMES} names of variables")
    names = draws.permutations("names", _NAMES)[:, :length].tolist()
    signs = (2 * draws.below("signs", 2, length) - 1).tolist()
    orders = draws.permutations("order", length).tolist()
    half = length // 2
    targets = (half + draws.number("asked", length - half)).tolist()
    return [_make_chain(*row) for row in zip(names, signs, orders, targets, strict=True)]


def _make_chain(names: list[int], signs: list[int], order: list[int], target: int) -> _Chain:
    clauses, resolved, before, value = [], [], "1", 1
    for name, sign in zip(names, signs, strict=True):
        value *= sign
        clauses.append(f"v{name} = {'+' if sign > 0 else '-'} {before}")
        resolved.append(f"v{name} {value:+d}")
        before = f"v{name}"
    question = f"v{names[target]} ?"
    shuffled = [clauses[index] for index in order]
    return _Chain(" ; ".join([*clauses, question]), " ; ".join([*shuffled, question]), resolved[: target + 1])
