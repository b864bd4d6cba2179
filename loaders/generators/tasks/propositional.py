"""Propositional statements by the depth and the breadth of their proofs.

After the design of PITA (Tong, Cakar and Pehlevan 2026, arXiv 2602.14404): statements, true or false, whose proofs are
long or have many cases. The published 23 million statements are not used; format and draws are new.

A statement consists of a disjunction of `breadth` heads, a set of implications and a goal. A chain of `depth`
implications begins at every head, and at one additional head that is not in the disjunction. In a true statement all
chains of the disjunction end in the goal, and the additional chain ends in another atom; in a false one it ends in the
goal in place of one of them. So counts of atoms are not informative: the chains must be followed, one case per head.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ._contract import Draws, Examples, Tape, require

_ATOMS = 100
"""Atoms are named p0 .. p99, in random order."""


@dataclass(frozen=True)
class _Statement:
    text: str
    lanes: list[list[str]]
    """The atoms of each case, from its head to its end."""
    holds: bool

    @property
    def verdict(self) -> str:
        return "true" if self.holds else "false"


def entailment(draws: Draws, depth: int, *, breadths: list[int]) -> Examples:
    """Whether the goal follows: "true" or "false". The breadth of each statement is drawn from `breadths`, and is a
    further column."""
    statements = _draw_statements(draws, depth, breadths)
    return _make_examples(statements, [statement.verdict for statement in statements])


def entailment_proof(draws: Draws, depth: int, *, breadths: list[int]) -> Examples:
    """`entailment` with a proof before the verdict: each case of the disjunction, atom by atom."""
    statements = _draw_statements(draws, depth, breadths)
    return _make_examples(
        statements, [" ; ".join([*map(" ".join, statement.lanes), statement.verdict]) for statement in statements]
    )


def _make_examples(statements: list[_Statement], outputs: list[str]) -> Examples:
    return Examples(
        [statement.text for statement in statements],
        outputs,
        meta={"breadth": [len(statement.lanes) for statement in statements]},
    )


def _draw_statements(draws: Draws, depth: int, breadths: list[int]) -> list[_Statement]:
    deepest = (_ATOMS - 2) // (max(breadths) + 1)
    require(depth <= deepest, depth, f"{_ATOMS} atoms allow chains of at most {deepest} for {max(breadths)} cases")
    return [_draw_statement(tape, depth, breadths[tape.below(len(breadths))]) for tape in draws.tapes("statement")]


def _draw_statement(tape: Tape, depth: int, breadth: int) -> _Statement:
    goal, other, *names = (f"p{atom}" for atom in tape.shuffled(range(_ATOMS)))
    lanes = [names[lane * depth : (lane + 1) * depth] for lane in range(breadth + 1)]
    holds = tape.below(2) == 1
    astray = breadth if holds else tape.below(breadth)
    lanes = [[*lane, other if number == astray else goal] for number, lane in enumerate(lanes)]
    implications = [f"{left} > {right}" for lane in lanes for left, right in pairwise(lane)]
    given = " | ".join(lane[0] for lane in lanes[:breadth])
    text = " ; ".join([given, *tape.shuffled(implications)]) + f" ; {goal} ?"
    return _Statement(text, lanes[:breadth], holds)
