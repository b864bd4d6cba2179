"""A drand beacon is verified offline, by the network's public key alone."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from importlib.util import find_spec

import pytest
from farshift.core.errors import BadData, FarshiftError, MissingExtra
from farshift.leaderboard.sealed import drand
from farshift.leaderboard.sealed.drand import QUICKNET, randomness, read_beacon
from farshift.leaderboard.sealed.randomness import announce, announced, drawing_seed
from farshift.leaderboard.sealed.times import moment, stamp

SIGNATURE = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"
RANDOMNESS = "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd"
"""Round 1000 of quicknet, as drand published it on 2023-08-23."""
ANOTHER = "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b"
"""Round 657413."""

with_py_ecc = pytest.mark.skipif(find_spec("py_ecc") is None, reason="farshift[beacon] is not installed")


def test_the_network_s_hash_binds_its_key_period_and_first_round():
    assert QUICKNET.chain == "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
    assert list(drand.NETWORKS) == [QUICKNET.chain]


def test_a_round_has_its_time():
    assert stamp(QUICKNET.time_of(1)) == "2023-08-23T15:09:27Z"
    assert stamp(QUICKNET.time_of(1000)) == "2023-08-23T15:59:24Z"
    for seconds, number in ((0, 1000), (1, 1001), (3, 1001), (4, 1002)):
        assert QUICKNET.round_at(moment("2023-08-23T15:59:24Z").replace(second=24 + seconds)) == number
    assert QUICKNET.round_at(moment("2020-01-01")) == 1


@with_py_ecc
@pytest.mark.parametrize(("number", "signature"), [(1000, SIGNATURE), (657413, ANOTHER)])
def test_published_beacons_verify(number, signature):
    found = randomness(QUICKNET, number, signature).hex()
    assert (
        found == {1000: RANDOMNESS, 657413: "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587"}[number]
    )


@pytest.mark.attack("entrant", "JSON nested deeper than the stack, after a beacon was verified")
@with_py_ecc
def test_after_a_beacon_is_verified_json_that_is_nested_too_deeply_is_refused_as_before():
    code = (
        "import json, sys\n"
        "from farshift.leaderboard.sealed.drand import QUICKNET, randomness\n"
        "before = sys.getrecursionlimit()\n"
        f"randomness(QUICKNET, 1000, {SIGNATURE!r})\n"
        "assert sys.getrecursionlimit() == before\n"
        "try:\n    json.loads('[' * 100_000)\nexcept RecursionError:\n    print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


@pytest.mark.attack("operator", "a beacon that drand did not sign")
@with_py_ecc
@pytest.mark.parametrize(
    ("number", "signature"),
    [
        (1001, SIGNATURE),
        (1000, ANOTHER),
        (1000, SIGNATURE[:-1] + "8"),
        (1000, "c0" + 94 * "0"),
        (1000, "80" + 93 * "0" + "4"),
        (1000, 96 * "0"),
        (1000, 96 * "f"),
        (1000, "zz"),
        (1000, ""),
        (0, SIGNATURE),
    ],
    ids=[
        "another round",
        "another signature",
        "a changed one",
        "infinity",
        "outside the subgroup",
        "zeros",
        "ones",
        "no hex",
        "none",
        "round 0",
    ],
)
def test_whatever_is_not_the_signature_of_the_round_is_refused(number, signature):
    with pytest.raises(BadData, match="does not verify"):
        randomness(QUICKNET, number, signature)


def test_without_the_library_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *more, **options):
        if name.startswith("py_ecc"):
            raise ImportError(name)
        return real(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"farshift\[beacon\]"):
        randomness(QUICKNET, 1000, SIGNATURE)


def test_a_beacon_is_read_as_drand_s_api_gives_it(tmp_path):
    file = tmp_path / "beacon.json"
    file.write_text(json.dumps({"round": 1000, "randomness": RANDOMNESS, "signature": SIGNATURE.upper()}))
    assert read_beacon(file) == (1000, SIGNATURE)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"round": "1000", "signature": "00"}',
        '{"round": true, "signature": "00"}',
        '{"round": 1000, "signature": "b4"}',
        '{"round": 1000, "signature": 7}',
        "[" * 100_000,
        "{" + " " * (1 << 17) + "}",
    ],
)
def test_files_that_are_no_beacon_are_refused_in_one_line(content, tmp_path):
    file = tmp_path / "beacon.json"
    file.write_text(content)
    with pytest.raises(BadData, match="is not a beacon") as refused:
        read_beacon(file)
    assert "\n" not in str(refused.value)


@pytest.mark.attack("operator", "a drand network with a key of its own")
def test_a_network_of_the_board_s_own_is_not_announced():
    """An operator who makes a key pair can sign any round with it beforehand."""
    there = announce("drand", "2031-01-01").record()
    assert announced(there).record() == there
    for name, value in (("public_key", "00" * 96), ("time", "2031-01-02T00:00:00Z"), ("scheme", "own")):
        with pytest.raises(FarshiftError, match="as drand has it"):
            announced(there | {name: value})
    with pytest.raises(FarshiftError, match="drand network that is known"):
        announced(there | {"chain": "00" * 32})
    for odd in (None, [], {}, "drand", {"source": "dice"}, there | {"round": "x"}):
        with pytest.raises(FarshiftError, match="no known source"):
            announced(odd)
    with pytest.raises(FarshiftError, match="no source"):
        announce("dice", "2031-01-01")


def test_the_seed_is_the_secret_xor_a_digest_of_the_public_part():
    secret, public = bytes(range(32)), bytes.fromhex(RANDOMNESS)
    found = drawing_seed(secret, "a-1", public)
    pad = drawing_seed(bytes(32), "a-1", public)
    assert found == bytes(a ^ b for a, b in zip(secret, pad, strict=True))
    assert len({found, drawing_seed(secret, "a-2", public), drawing_seed(secret, "a-1", bytes(32)), secret}) == 4
