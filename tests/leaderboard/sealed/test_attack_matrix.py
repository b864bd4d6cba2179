"""Every generator that can be sealed, against every attack that needs no knowledge of the task: guessed seeds, the order
of rows and ids, the lowest bits of inputs, and the mixing function. A budget of a second each; larger ones are slow.

Where an attack works on published draws, a test says so: whoever knows a published seed has every row (all generators),
the counter of a row tells its label (slabs), and whole draws give the key (prefix sums, test_attacks.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import Benchmark, find_benchmark
from farshift.core import draws
from farshift.core.draws import make_stream_name
from farshift.core.plugins import find_plugin_files, load_module
from farshift.leaderboard.sealed.drawing import SealedDraw, check_sealable, draw_sealed_rows
from farshift.leaderboard.sealed.published import select_inputs
from farshift.loaders.acquire.source import Source, add_row_ids, find_source
from farshift.loaders.freezing.redraw import find_seeded_distribution, redraw_rows
from farshift.splits.rows import compute_first_ids
from numpy.typing import NDArray
from sealed_cases import SEED
from sklearn.linear_model import LogisticRegression

SMALL: dict[str, dict[str, Any]] = {
    "addition/length": {"sizes": [{"first": 12, "last": 16, "each": 240}]},
    "arc_episodes_systematicity/triples": {"episodes": 1200},
    "arc_grids/pairs": {"per_combination": 10},
    "balls/materials": {"regimes": [{"regime": "usual", "rows": 1200, "speed": [1.0, 4.0], "radius": [0.7, 1.5]}]},
    "concept_shift/angle": {"counts": {"0": 1200}},
    "evolving_people/next_3": {"people": 120},
    "feature_noise/weak_alone": {"regimes": [{"name": "weak alone", "rows": 1200, "share": 0.0}]},
    "gcog/productive": {"blocks": [{"regime": "one", "rows": 800, "depth": 1, "distractors": [20, 20]}]},
    "group_shift/none": {"regimes": {"none": {}}, "counts": {"train": [10, 10], "test": [600, 600]}},
    "hamiltonian/new_systems": {"counts": {"double well": 1200}},
    "in_context_regression/covariate_shift": {
        "regimes": [{"name": "skewed", "inputs": "skewed", "rows": 1200, "least": 10, "most": 10}]
    },
    "mazes/9_to_21": {"counts": {"13": 1000}},
    "prefix_sums/32_to_64": {"counts": {"64": 1200}},
    "shapes/diagonal": {"per_combination": 4},
    "skills/pairs": {"counts": {"3": 2}},
    "slabs_5/shuffled": {"counts": {"as drawn": 1200}},
}
"""A benchmark of every generator that can be sealed, and options that make a thousand rows of it."""

GUESSES = ("0", "prefix_sums__32_to_64-1")
"""Seeds that an attacker tries, beside the published one and the commitment."""

EVERY = pytest.mark.parametrize("under", SMALL, indirect=True)


@dataclass
class Attacked:
    """A generator's rows, few of them."""

    benchmark: Benchmark
    drawn: dict[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def source(self) -> Source:
        """Whose published rows are not made for it."""
        return find_source(self.benchmark.manifest.definition.source.name)

    def rows(self, seed: str) -> pa.Table:
        """In the generator's own order; those of one seed are drawn once."""
        if seed not in self.drawn:
            self.drawn[seed] = self.draw(seed)
        return self.drawn[seed]

    def draw(self, seed: str) -> pa.Table:
        drawn = find_seeded_distribution(self.source)
        options = drawn.options | SMALL[self.benchmark.name] | {"seed": seed}
        return self.source.compute_rows(drawn.model_copy(update={"options": options}))

    def shown(self, table: pa.Table) -> pa.Table:
        """As a board hands them out: by ascending id."""
        return add_row_ids(table, self.source.schema)[0]

    @property
    def published_seed(self) -> str:
        return str(find_seeded_distribution(self.source).options["seed"])

    @cached_property
    def sealed(self) -> pa.Table:
        return self.shown(self.rows(make_stream_name(SEED)))

    def bit(self, table: pa.Table) -> NDArray[np.int64]:
        """One bit of each label: of a class its lowest, of a number the side of the median, of a text a checksum's."""
        labels = table[self.benchmark.task.label].to_pylist()
        if isinstance(labels[0], str):
            return np.array([crc32(label.encode()) & 1 for label in labels])
        values = np.array(labels)
        return (values % 2 if values.dtype.kind == "i" else values > np.median(values)).astype(np.int64)


@pytest.fixture(scope="module")
def made() -> dict[str, Attacked]:
    return {}


@pytest.fixture
def under(request: pytest.FixtureRequest, made: dict[str, Attacked]) -> Attacked:
    return made.setdefault(request.param, Attacked(find_benchmark(request.param)))


def lowest_bits(inputs: NDArray[np.float32]) -> NDArray[np.float64]:
    """The twelve lowest bits of every number, -1 or 1; (rows, 12 * width)."""
    numbers = np.ascontiguousarray(inputs, np.float32).view(np.uint32)
    result = (numbers[:, :, None] >> np.arange(12, dtype=np.uint32)) & 1
    return 2.0 * result.reshape(len(inputs), -1) - 1


def share_right(known: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Of a linear classifier that learns from half of the rows, on the other half."""
    half = len(truth) // 2
    model = LogisticRegression(C=0.01, max_iter=200).fit(known[:half], truth[:half])
    return float(model.score(known[half:], truth[half:]))


def bits_of(numbers: NDArray[Any], width: int) -> NDArray[np.float64]:
    """-1 or 1; (n, width)."""
    return 2.0 * ((numbers[:, None].astype(np.uint64) >> np.arange(width, dtype=np.uint64)) & np.uint64(1)) - 1


def found_by(under: Attacked, guess: str, looked_for: pa.Table) -> float:
    """The share of rows that are among those of a guessed seed, labels and all."""
    return float(np.isin(looked_for["check"].to_numpy(), under.shown(under.rows(guess))["check"].to_numpy()).mean())


REFUSED = {
    "rated_sums": "rated_sums/irt_1pl",
    "reasoning_gym": "reasoning_gym/easy_to_hard",
    "xor_clusters": "xor_clusters/eta5",
}
"""Generators whose benchmarks cannot be sealed for another reason than what their seed makes."""


def test_the_matrix_has_every_generator_that_can_be_sealed():
    result = set()
    for path in find_plugin_files("loaders/generators", "[a-z]*.py"):
        generator = load_module("loaders/generators", path.stem, "generator")
        if "seed" in signature(generator.rows).parameters and not getattr(generator, "SEED_MAKES", ""):
            result.add(path.stem)
    for name in REFUSED.values():
        with pytest.raises(FarshiftError, match="cannot be sealed"):
            check_sealable(find_benchmark(name))
    assert result - set(REFUSED) == {
        find_seeded_distribution(Attacked(find_benchmark(name)).source).generator for name in SMALL
    }


@EVERY
def test_whoever_knows_a_published_seed_has_every_row_and_label(under):
    """The control of guessing."""
    published = under.shown(under.rows(under.published_seed))
    assert found_by(under, under.published_seed, published) == 1


@pytest.mark.attack("entrant", "guessed seeds of a draw, for every generator")
@EVERY
def test_no_guessed_seed_gives_the_rows_of_a_draw(under):
    for guess in (under.published_seed, SEED.hex()[:16], *GUESSES):
        assert found_by(under, guess, under.sealed) < 0.05, guess


@pytest.mark.attack("entrant", "a dictionary attack on the seed of a draw, for every generator")
@pytest.mark.slow
@EVERY
def test_no_seed_of_a_dictionary_gives_the_rows_of_a_draw(under):
    name = under.published_seed.partition("@")[0]
    dictionary = [f"{name}@{number}" for number in range(2, 20)] + [str(number) for number in range(40)]
    for guess in (*dictionary, SEED.hex(), SEED.hex().upper(), f"/{make_stream_name(SEED)}", "secret:" + "00" * 32):
        assert found_by(under, guess, under.sealed) < 0.05, guess


def known_of(under: Attacked) -> NDArray[np.float64]:
    """What an attacker sees of a draw beside the task: places, ids, and the lowest bits of inputs that are numbers."""
    table = under.sealed
    seen = [bits_of(np.arange(table.num_rows), 11), bits_of(table["row_id"].to_numpy(), 64)]
    for name in under.benchmark.task.inputs:
        values = table[name].combine_chunks()
        if pa.types.is_fixed_size_list(values.type):
            numbers = values.flatten().to_numpy().reshape(len(values), -1)
            pixels = numbers.dtype == np.uint8
            seen.append(2.0 * (numbers[:, :256] & 1) - 1 if pixels else lowest_bits(numbers))
    return np.concatenate(seen, axis=1)


@pytest.mark.attack("entrant", "labels inferred from positions, ids and lowest bits, for every generator")
@EVERY
def test_places_ids_and_lowest_bits_of_a_draw_tell_no_label(under):
    truth = under.bit(under.sealed)
    chance = max(truth.mean(), 1 - truth.mean())
    assert share_right(known_of(under), truth) < chance + 4 * np.sqrt(0.25 / (len(truth) // 2))


def test_the_counter_of_a_published_row_of_slabs_tells_its_label(made):
    """The control: in the generator's own order the label is the counter's lowest bit."""
    slabs = made.setdefault("slabs_5/shuffled", Attacked(find_benchmark("slabs_5/shuffled")))
    for seed in (slabs.published_seed, make_stream_name(SEED)):
        rows = slabs.rows(seed)
        assert share_right(bits_of(np.arange(rows.num_rows), 11), slabs.bit(rows)) == 1


@pytest.mark.attack("entrant", "counters inferred from the order of a draw, for every generator")
@EVERY
def test_the_order_of_a_draw_does_not_show_the_counters(under):
    """Which would tell the labels of slabs, and the blocks of every generator."""
    rows = under.rows(make_stream_name(SEED))
    counters = np.argsort(compute_first_ids(rows, under.source.schema))
    places = np.arange(len(counters))
    assert abs(np.corrcoef(places, counters)[0, 1]) < 4 / np.sqrt(len(counters))


@pytest.mark.attack("entrant", "brute force of a 64-bit key from a draw, for every generator")
@EVERY
def test_every_number_of_a_draw_comes_from_the_cipher(under, monkeypatch):
    """Of a stream that is not mixed there is no 64-bit key to recover, by any budget."""
    mixed, enciphered = asked_of_each(lambda: under.draw(make_stream_name(SEED)), monkeypatch)
    assert mixed == []
    assert enciphered


def asked_of_each(drawing: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """The streams that a generator draws from by a secret seed: by the mixing function, and by the cipher. (The rule
    that divides rows afterwards draws by public names.)"""
    mixed: list[str] = []
    enciphered: list[str] = []
    by_mixing, by_cipher = draws.derive_key, draws.draw_secret_bits
    monkeypatch.setattr(draws, "derive_key", lambda stream: (mixed.append(stream), by_mixing(stream))[1])
    monkeypatch.setattr(
        draws, "draw_secret_bits", lambda stream, at: (enciphered.append(stream), by_cipher(stream, at))[1]
    )
    drawing()
    return mixed, enciphered


WORDS = NDArray[np.uint64]
COUNTERS = 4_000
"""Rows among whose counters an attacker looks."""


def unshifted(values: WORDS, by: int) -> WORDS:
    """The inverse of `x ^ (x >> by)`."""
    result = values
    for _ in range(64 // by + 1):
        result = values ^ (result >> np.uint64(by))
    return result


def unmixed(values: WORDS) -> WORDS:
    """The inverse of the mixing function: two shifts and two odd factors, each of which can be undone."""
    values = unshifted(values, 31) * np.uint64(pow(0x94D049BB133111EB, -1, 2**64))
    values = unshifted(values, 27) * np.uint64(pow(0xBF58476D1CE4E5B9, -1, 2**64))
    return unshifted(values, 30)


def keys_of(shown: WORDS) -> set[int]:
    """The keys of a mixed stream that agree with three shown draws of it, whatever their counters. (Of two there are
    two, as either may have either counter.)"""
    inner = draws._mix_bits(np.arange(COUNTERS, dtype=np.uint64) + draws._GOLDEN)
    first, *others = (set(np.bitwise_xor(inner, item).tolist()) for item in unmixed(shown[:3]))
    return first.intersection(*others)


def words_of(texts: list[str]) -> WORDS:
    """Strings of 64 bits as the draws that they show."""
    return np.array([int(text, 2) for text in texts], np.uint64)


@pytest.fixture(scope="module")
def sums():
    return find_benchmark("prefix_sums/32_to_64")


@pytest.fixture(scope="module")
def sums_drawn(sums) -> SealedDraw:
    return draw_sealed_rows(sums, SEED)


def test_the_key_of_a_published_stream_is_found_from_three_rows_and_gives_all_others(sums):
    """The control: the attack works where it can."""
    rows = redraw_rows(sums.split.source, "some published seed")
    shown = words_of([text for text in rows["bits"].to_pylist() if len(text) == 64])
    (key,) = keys_of(shown)
    assert key == draws.derive_key("some published seed/64")
    inner = draws._mix_bits(np.arange(COUNTERS, dtype=np.uint64) + draws._GOLDEN)
    assert np.isin(shown, draws._mix_bits(inner ^ np.uint64(key))).all()


@pytest.mark.attack("entrant", "recovery of the key of a sealed stream from complete draws")
def test_the_same_attack_on_a_draw_finds_no_key(sums, sums_drawn):
    texts = select_inputs(sums_drawn.rows, sums)["bits"].to_pylist()
    shown = words_of([text for text in texts if len(text) == 64])
    assert len(shown) == 250
    for at in range(0, 45, 3):
        assert keys_of(shown[at : at + 3]) == set()
