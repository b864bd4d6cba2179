"""Merkle proofs against RFC 6962's definitions written down as they stand there, and the trees that are known."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from farshift.leaderboard.ledger.checkpoint import merkle_root
from farshift.leaderboard.ledger.proofs import Tree, extends, included

MOST = 33
LEAVES = [sha256(bytes([number])).digest() for number in range(MOST)]

KNOWN = [
    bytes.fromhex(leaf)
    for leaf in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
"""The leaves of the tree that implementations of Certificate Transparency are tested with."""


def mth(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    k = power_below(len(leaves))
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest() if leaves else sha256().digest()


def power_below(count: int) -> int:
    k = 1
    while 2 * k < count:
        k *= 2
    return k


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = power_below(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: list[bytes], whole: bool) -> list[bytes]:
    if m == len(leaves):
        return [] if whole else [mth(leaves)]
    k = power_below(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], whole), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(LEAVES)


def test_roots_are_those_of_the_definition_and_of_checkpoints(tree):
    for size in range(1, MOST + 1):
        assert tree.root(size) == mth(LEAVES[:size]) == merkle_root(LEAVES[:size])
    assert tree.root(0) == merkle_root([])


def test_the_known_tree_has_its_known_roots():
    known = Tree(KNOWN)
    assert known.root(1).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert known.root(8).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


def test_every_record_is_shown_to_be_in_every_tree_and_only_there(tree):
    for size in range(1, MOST + 1):
        for place in range(size):
            proof = tree.inclusion(place, size)
            assert proof == path(place, LEAVES[:size])
            assert included(LEAVES[place], place, size, proof, tree.root(size))
            assert not included(LEAVES[place], (place + 1) % size, size, proof, tree.root(size)) or size == 1
            assert not included(b"another", place, size, proof, tree.root(size))
            assert not included(LEAVES[place], place, size, [*proof, b"\0" * 32], tree.root(size))


def test_every_tree_is_shown_to_extend_every_earlier_one(tree):
    for size in range(1, MOST + 1):
        for old in range(1, size + 1):
            proof = tree.consistency(old, size)
            assert proof == subproof(old, LEAVES[:size], True)
            assert extends(old, tree.root(old), size, tree.root(size), proof)
        assert extends(0, tree.root(0), size, tree.root(size), tree.consistency(0, size))


def test_no_proof_shows_that_a_rewritten_tree_extends_the_first(tree):
    draw = np.random.Generator(np.random.PCG64(7))
    for size in range(2, MOST + 1):
        for old in range(1, size):
            changed = [*LEAVES[:size]]
            changed[int(draw.integers(old))] = b"rewritten"
            other = Tree(changed)
            proof = other.consistency(old, size)
            assert not extends(old, tree.root(old), size, other.root(size), proof)
            honest = tree.consistency(old, size)
            assert not extends(old, tree.root(old), size, other.root(size), honest)
            assert not extends(old, tree.root(old), size, tree.root(size), honest[:-1])
            assert not extends(old, tree.root(old), size, tree.root(size), [*honest, b"\0" * 32])


def test_a_tree_that_grows_is_the_tree_of_all_its_leaves(tree):
    growing = Tree()
    for leaf in LEAVES:
        growing.extend([leaf])
    assert growing.root() == tree.root()
    assert [growing.root(size) for size in range(MOST)] == [tree.root(size) for size in range(MOST)]


@pytest.mark.parametrize(("part", "size"), [(5, 4), (0, MOST + 1), (-1, 3)])
def test_a_proof_of_what_is_not_there_is_an_error(tree, part, size):
    with pytest.raises(ValueError, match="has no"):
        tree.consistency(part, size)
