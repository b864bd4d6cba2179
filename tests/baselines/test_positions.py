"""Positional encodings against the numbers of their papers."""

import cmath
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from farshift.baselines.positions import Position, compute_distances, compute_positions, make_position
from farshift.baselines.positions.alibi import compute_exponents
from farshift.baselines.positions.sinusoidal import compute_sinusoids
from farshift.baselines.positions.t5_relative import compute_bucket_limits
from farshift.baselines.replicas.rng import Rng, make_keys
from farshift.core.errors import ModelError, UnknownName
from torch import Tensor

ADDED = ["sinusoidal", "learned", "randomised"]
SETTINGS: dict[str, Any] = {"width": 16, "heads": 2, "position_range": 64}


def made(name: str, causal: bool = True, **settings: Any) -> Any:
    torch.manual_seed(0)
    return make_position(SETTINGS | settings | {"position": name}, causal).double()


def zeros(count: int, replicas: int = 1) -> Tensor:
    return torch.zeros(replicas, 2, count, 16, dtype=torch.float64)


def test_a_place_is_the_column_less_the_padding_before_its_row() -> None:
    skipped = torch.tensor([[0, 3]])
    assert compute_positions(2, 3, None, torch.device("cpu")).tolist() == [2, 3, 4]
    assert compute_positions(0, 5, skipped, torch.device("cpu")).tolist() == [[[0, 1, 2, 3, 4], [0, 0, 0, 0, 1]]]
    assert compute_positions(4, 2, skipped, torch.device("cpu")).tolist() == [[[4, 5], [1, 2]]]
    assert compute_distances(1, 2, torch.device("cpu")).tolist() == [[-1, 0, 1], [-2, -1, 0]]


def test_sinusoids_are_those_of_the_paper() -> None:
    result = compute_sinusoids(torch.tensor([0, 3, 1000]), 6, torch.float64)
    for row, position in zip(result.tolist(), (0, 3, 1000), strict=True):
        angles = [position / 10_000 ** (2 * i / 6) for i in range(3)]
        assert row == pytest.approx([*map(math.sin, angles), *map(math.cos, angles)], abs=1e-12)
    assert compute_sinusoids(torch.arange(2), 5, torch.float64).shape == (2, 5)


def test_half_precision_tells_far_neighbours_apart() -> None:
    result = compute_sinusoids(torch.tensor([1000, 1001]), 8, torch.bfloat16)
    exact = compute_sinusoids(torch.tensor([1000, 1001]), 8, torch.float64)
    assert result.dtype == torch.bfloat16
    assert torch.allclose(result.double(), exact, atol=5e-3)


@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_to_a_token_is_a_matter_of_its_place_alone(name: str) -> None:
    encoding = made(name)
    full = encoding.added(zeros(8))
    assert torch.equal(encoding.added(zeros(3), first=5), full[:, :, 5:])
    moved = encoding.added(zeros(8), skipped=torch.tensor([[0, 3]]))
    assert torch.equal(moved[:, 0], full[:, 0])
    assert torch.equal(moved[:, 1, 3:], full[:, 1, :5])
    assert len(torch.unique(full[0, 0], dim=0)) == 8


def test_no_positions_leave_everything_as_it_is() -> None:
    encoding, x = made("none"), torch.randn(1, 2, 3, 16)
    assert encoding.added(x) is x
    assert encoding.turned(x) is x
    assert encoding.bias(0, 3) is None


def test_a_learned_place_that_training_did_not_reach_keeps_its_vector() -> None:
    encoding = made("learned")
    before = encoding.table.detach().clone()
    assert before.square().mean().item() == pytest.approx(0.5, rel=0.1)
    encoding.added(zeros(5)).square().sum().backward()
    assert (encoding.table.grad[:, :5] != 0).all()
    assert (encoding.table.grad[:, 5:] == 0).all()
    assert torch.equal(encoding.added(zeros(1), first=63)[0, 0, 0], before[0, 63])


def test_a_learned_place_beyond_the_table_is_refused() -> None:
    with pytest.raises(ModelError, match="a text of 65 tokens, but the setting position_range = 64: raise it"):
        made("learned").added(zeros(1), first=64)


def test_alibis_slopes_are_those_of_the_paper() -> None:
    assert [2**e for e in compute_exponents(8)] == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert compute_exponents(16) == [-0.5, -1, -1.5, -2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5, -8]
    assert compute_exponents(1) == [-8]
    assert compute_exponents(6) == [-2, -4, -6, -8, -1, -3]
    assert compute_exponents(12) == [-1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5]


def test_alibi_lowers_scores_by_slope_times_distance() -> None:
    result = made("alibi").bias(0, 3)
    assert result.shape == (1, 2, 3, 3)
    assert (result[0, 0] * 16).tolist() == [[0, -1, -2], [-1, 0, -1], [-2, -1, 0]]
    assert (result[0, 1] * 256).tolist() == [[0, -1, -2], [-1, 0, -1], [-2, -1, 0]]


def test_t5s_buckets_of_an_encoder_are_those_computed_by_hand() -> None:
    # 8 single distances, then 8 * 16 ** (k / 8) = 8, 11.3, 16, 22.6, 32, 45.3, 64, 90.5.
    assert compute_bucket_limits(16) == [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    encoding = made("t5_relative", causal=False)
    earlier = {
        0: 0,
        1: 1,
        7: 7,
        8: 8,
        11: 8,
        12: 9,
        15: 9,
        16: 10,
        22: 10,
        23: 11,
        63: 13,
        64: 14,
        90: 14,
        91: 15,
        500: 15,
    }
    for distance, bucket in earlier.items():
        assert encoding.buckets(torch.tensor(-distance)) == bucket
        assert encoding.buckets(torch.tensor(distance)) == bucket + (16 if distance else 0)


def test_t5s_buckets_of_a_causal_decoder_are_those_of_the_formula() -> None:
    encoding = made("t5_relative")
    for distance in range(300):
        far = 16 + math.floor(16 * math.log(max(distance, 1) / 16) / math.log(128 / 16))
        expected = distance if distance < 16 else min(31, far)
        assert encoding.buckets(torch.tensor(-distance)) == expected


@pytest.mark.parametrize("causal", [False, True])
def test_t5_adds_the_weight_of_the_bucket(causal: bool) -> None:
    encoding = made("t5_relative", causal)
    result = encoding.bias(2, 3)
    assert result.shape == (1, 2, 3, 5)
    for head in range(2):
        for query in range(3):
            for key in range(5):
                bucket = int(encoding.buckets(torch.tensor(key - (query + 2))))
                assert result[0, head, query, key] == encoding.weight[0, head, bucket]


@pytest.mark.parametrize("name", ["alibi", "t5_relative"])
def test_biases_do_not_change_when_all_positions_shift(name: str) -> None:
    for causal in (False, True):
        encoding = made(name, causal)
        assert torch.equal(encoding.bias(7, 5)[..., 7:], encoding.bias(0, 5))


def test_rope_turns_pairs_of_features_as_complex_numbers() -> None:
    x = torch.randn(1, 1, 3, 8, dtype=torch.float64)
    turned = made("rope").turned(x, first=4)
    for position in range(3):
        for pair in range(4):
            before = complex(x[0, 0, position, pair], x[0, 0, position, pair + 4])
            after = complex(turned[0, 0, position, pair], turned[0, 0, position, pair + 4])
            angle = (4 + position) / 10_000 ** (2 * pair / 8)
            assert after == pytest.approx(before * cmath.exp(1j * angle), abs=1e-12)


def test_scores_under_rope_depend_on_distances_alone() -> None:
    encoding = made("rope")
    queries, others = torch.randn(2, 3, 2, 6, 8, dtype=torch.float64).unbind()
    here = encoding.turned(queries) @ encoding.turned(others).mT
    there = encoding.turned(queries, first=50) @ encoding.turned(others, first=50).mT
    assert torch.allclose(here, there, rtol=0, atol=1e-12)
    apart = encoding.turned(queries, first=50) @ encoding.turned(others).mT
    assert not torch.allclose(here, apart, atol=1e-2)


def noisy(names: list[str], step: int = 0, **settings: Any) -> Any:
    """A randomised encoding in training, at a step."""
    encoding = made("randomised", **settings)
    encoding.rng = Rng(make_keys(names))
    encoding.rng.at(step)
    return encoding


def drawn(encoding: Any, count: int, replicas: int = 1, skipped: Tensor | None = None) -> Tensor:
    """The places of which sinusoids were added, (K, n, count)."""
    table = compute_sinusoids(torch.arange(64), 16, torch.float64)
    nearest = torch.cdist(encoding.added(zeros(count, replicas), skipped=skipped).flatten(0, 1), table)
    assert nearest.min(dim=-1).values.max() < 1e-6
    return nearest.argmin(dim=-1).unflatten(0, (replicas, 2))


def test_randomised_places_increase_within_the_range_and_differ_from_step_to_step() -> None:
    seen = set()
    for step in range(20):
        result = drawn(noisy(["a"], step), 10)
        assert (result.diff(dim=-1) > 0).all()
        assert torch.equal(result[:, 0], result[:, 1])
        seen.add(tuple(result[0, 0].tolist()))
    assert len(seen) == 20
    assert drawn(noisy(["a"]), 64)[0, 0].tolist() == list(range(64))


def test_randomised_places_are_a_uniform_subset() -> None:
    # The i-th smallest of 5 of 64 places is (i + 1) * 65 / 6 - 1 on average.
    result = torch.stack([drawn(noisy(["a"], step), 5)[0, 0] for step in range(600)]).double()
    expected = torch.arange(1, 6) * 65 / 6 - 1
    error = result.std(dim=0) / 600**0.5
    assert ((result.mean(dim=0) - expected).abs() < 4 * error).all()


def test_padding_before_a_row_takes_none_of_its_random_places() -> None:
    full = drawn(noisy(["a"]), 10)
    moved = drawn(noisy(["a"]), 10, skipped=torch.tensor([[0, 3]]))
    assert torch.equal(moved[0, 0], full[0, 0])
    assert torch.equal(moved[0, 1, 3:], full[0, 1, :7])


def test_in_evaluation_places_are_as_far_apart_as_in_the_longest_training_text_on_average() -> None:
    encoding = noisy(["a"])
    for count in (7, 12, 5):
        encoding.added(zeros(count))
    with encoding.rng.disabled():
        assert drawn(encoding, 12)[0, 0].tolist() == [(i + 1) * 64 // 13 for i in range(12)]
        assert torch.equal(encoding.added(zeros(12)), encoding.added(zeros(20))[:, :, :12])


def test_a_training_text_longer_than_the_range_is_refused() -> None:
    with pytest.raises(ModelError, match="a text of 65 tokens, but the setting position_range = 64: raise it"):
        noisy(["a"]).added(zeros(65))


def test_an_encoding_of_ones_own_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "baselines" / "positions"
    home.mkdir(parents=True)
    (home / "counted.py").write_text(
        "from farshift.baselines.positions import Position\n\n\n"
        "class Encoding(Position):\n"
        "    def added(self, x, first=0, skipped=None, columns=None):\n"
        "        return x + first\n"
    )
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    result = made("counted")
    assert isinstance(result, Position)
    assert result.added(zeros(1), first=7).unique().tolist() == [7]
    assert result.bias(0, 1) is None


def test_an_unknown_encoding_is_named_with_those_like_it() -> None:
    with pytest.raises(UnknownName, match="no position named 'sinusoids': did you mean sinusoidal"):
        made("sinusoids")
