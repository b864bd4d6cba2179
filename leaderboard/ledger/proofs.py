"""Merkle proofs over a ledger (RFC 6962, section 2.1): that a record is in it, and that it extends an earlier one.

A tree's leaves are the records' hashes, 32 bytes each, as in checkpoint.py. Proofs are lists of nodes, the lowest
first. Checking follows RFC 9162, sections 2.1.3.2 and 2.1.4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256


class Tree:
    """The Merkle tree of a ledger that grows. The nodes over full subtrees are kept: a proof costs O(log² n)."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._levels: list[list[bytes]] = [[]]
        self.extend(leaves)

    def __len__(self) -> int:
        return len(self._levels[0])

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append leaves, of any length."""
        for leaf in leaves:
            node, level = leaf_hash(leaf), 0
            self._levels[0].append(node)
            while len(self._levels[level]) % 2 == 0:
                node = node_hash(*self._levels[level][-2:])
                level += 1
                if level == len(self._levels):
                    self._levels.append([])
                self._levels[level].append(node)

    def root(self, size: int | None = None) -> bytes:
        """The Merkle tree hash of the first `size` leaves, of all by default."""
        size = len(self) if size is None else size
        self._require(0, size)
        return self._node(0, size) if size else sha256().digest()

    def inclusion(self, place: int, size: int) -> list[bytes]:
        """The audit path of leaf `place` in the tree of the first `size` (RFC 6962, 2.1.1)."""
        self._require(place + 1, size)
        first, last, path = 0, size, []
        while last - first > 1:
            middle = first + _split(last - first)
            if place < middle:
                path.append(self._node(middle, last))
                last = middle
            else:
                path.append(self._node(first, middle))
                first = middle
        return path[::-1]

    def consistency(self, old: int, size: int) -> list[bytes]:
        """The proof that the tree of the first `size` leaves extends that of the first `old` (RFC 6962, 2.1.2). Empty
        where both are one, or the older one is empty."""
        self._require(old, size)
        if old in (0, size):
            return []
        first, last, known, path = 0, size, True, []
        while last != old:
            middle = first + _split(last - first)
            if old <= middle:
                path.append(self._node(middle, last))
                last = middle
            else:
                path.append(self._node(first, middle))
                first, known = middle, False
        if not known:
            path.append(self._node(first, last))
        return path[::-1]

    def _node(self, first: int, last: int) -> bytes:
        """The tree hash of leaves [first, last), where `first` begins a subtree of the whole."""
        count = last - first
        if count & (count - 1) == 0:
            level = count.bit_length() - 1
            return self._levels[level][first >> level]
        middle = first + _split(count)
        return node_hash(self._node(first, middle), self._node(middle, last))

    def _require(self, part: int, size: int) -> None:
        if not 0 <= part <= size <= len(self):
            raise ValueError(f"a tree of {len(self)} leaves has no {part} of {size}")


def leaf_hash(leaf: bytes) -> bytes:
    return sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def included(leaf: bytes, place: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether an audit path shows that `leaf` is number `place` of the `size` leaves under `root`."""
    if not 0 <= place < size:
        return False
    at, last, found = place, size - 1, leaf_hash(leaf)
    for node in path:
        if last == 0:
            return False
        if at % 2 or at == last:
            found = node_hash(node, found)
            while at and not at % 2:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, node)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def extends(old: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> bool:
    """Whether a proof shows that the tree of `size` leaves under `root` begins with the `old` leaves under `old_root`.
    Every tree extends the empty one."""
    if not 0 <= old <= size:
        return False
    if old == 0:
        return not path and old_root == sha256().digest()
    if old == size:
        return not path and old_root == root
    nodes = list(path)
    if old & (old - 1) == 0:
        nodes.insert(0, old_root)
    if not nodes:
        return False
    at, last = old - 1, size - 1
    while at % 2:
        at, last = at >> 1, last >> 1
    before = after = nodes[0]
    for node in nodes[1:]:
        if last == 0:
            return False
        if at % 2 or at == last:
            before, after = node_hash(node, before), node_hash(node, after)
            while at and not at % 2:
                at, last = at >> 1, last >> 1
        else:
            after = node_hash(after, node)
        at, last = at >> 1, last >> 1
    return last == 0 and before == old_root and after == root


def _split(count: int) -> int:
    """The largest power of two below a count of at least 2."""
    return 1 << (count - 1).bit_length() - 1
