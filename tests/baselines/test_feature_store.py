"""Features on the disk: each row encoded once, by whichever process comes first, and never read where damaged."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from farshift.baselines.encoding import frozen
from farshift.baselines.encoding.frozen import FeatureStore
from farshift.core.progress import report_to
from farshift.loaders.cache.entries import clear_cache, list_contents, verify_cache
from filelock import FileLock

WIDTH = 3


def digests(*numbers: int) -> list[bytes]:
    return [number.to_bytes(16, "big") for number in numbers]


def rows(*numbers: int) -> np.ndarray:
    return np.array([[number, -number, 1] for number in numbers], np.float32).reshape(-1, WIDTH)


class Reading:
    """What encodes numbers, and remembers which."""

    def __init__(self, *numbers: int) -> None:
        self.numbers, self.asked = numbers, []

    def __call__(self, places: list[int], advance: Callable[[int], None]) -> np.ndarray:
        self.asked += [self.numbers[position] for position in places]
        advance(len(places))
        return rows(*(self.numbers[position] for position in places))


def asked(store: FeatureStore, *numbers: int) -> list[int]:
    """Which of the numbers had to be encoded; their features are right in any case."""
    reading = Reading(*numbers)
    np.testing.assert_array_equal(store.of(digests(*numbers), reading), rows(*numbers))
    return reading.asked


def store(decides: Any = 1) -> FeatureStore:
    return FeatureStore("org/name", decides, WIDTH)


@pytest.mark.usefixtures("cache")
def test_a_row_is_encoded_once_by_all_who_read_in_the_same_way() -> None:
    first = store()
    assert asked(first, 5, 3, 5, 8) == [5, 3, 8]
    assert asked(first, 8, 5) == []
    assert asked(store(), 3, 9, 8, 5) == [9]
    assert asked(first, 9) == []
    assert asked(store(decides=2), 3) == [3]
    assert asked(store()) == []


def test_many_small_additions_leave_few_tables(cache: Path) -> None:
    growing, other = store(), store()
    for number in range(100):
        assert asked(growing, number) == [number]
    tables = list(cache.glob("features/*/*.arrow"))
    assert len(tables) <= 7
    assert asked(other, *range(100)) == []
    assert asked(store(), *range(100)) == []


def test_no_more_than_some_rows_are_lost_by_a_kill(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "ROWS", 4)
    reading = Reading(*range(10))

    def killed(places: list[int], advance: Callable[[int], None]) -> np.ndarray:
        if 8 in places:
            raise KeyboardInterrupt
        return reading(places, advance)

    with pytest.raises(KeyboardInterrupt):
        store().of(digests(*range(10)), killed)
    (folder,) = cache.glob("features/*[0-9a-f]")
    (folder / ".0123.arrow.99.tmp").write_bytes(b"half")
    assert asked(store(), *range(10)) == [8, 9]
    assert not list(folder.glob(".*.tmp"))


def test_progress_is_reported_from_the_first_row_to_the_last(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "ROWS", 4)
    heard = []

    class Listener:
        def say(self, text: str) -> None:
            pass

        def advance(self, label: str, done: int, total: int | None, note: str = "") -> None:
            heard.append((label, done, total))

    with report_to(Listener()):
        asked(store(), *range(10))
    assert heard == [("encoding by org/name", done, 10) for done in (0, 4, 4, 8, 8, 10)]


def test_features_are_listed_verified_and_cleared_as_an_entry_of_their_own(cache: Path) -> None:
    asked(store(), 1, 2)
    (entry,) = list_contents()["entries"]
    assert (entry["kind"], entry["name"][:9]) == ("features", "org-name-")
    assert [verdict.state for verdict in verify_cache()] == ["intact"]
    assert [gone.kind for gone in clear_cache(["features"]).removed] == ["features"]
    assert asked(store(), 1, 2) == [1, 2]


def test_a_damaged_table_is_made_again_and_what_was_mapped_stays(cache: Path) -> None:
    before = store()
    asked(before, 1, 2)
    (path,) = cache.glob("features/*/*.arrow")
    path.unlink()
    path.write_bytes(b"changed")
    assert [verdict.state for verdict in verify_cache()] == ["changed"]
    assert asked(before, 1, 2) == []
    assert asked(store(), 1, 2) == [1, 2]
    assert [verdict.state for verdict in verify_cache()] == ["intact"]


def test_a_cache_that_was_cleared_under_a_reader_costs_it_nothing(cache: Path) -> None:
    reading = store()
    asked(reading, 1, 2)
    clear_cache(everything=True)
    assert asked(reading, 2, 1) == []
    assert asked(reading, 3) == [3]


def _encode(cache: str, numbers: range, told: Any) -> None:
    os.environ["FARSHIFT_CACHE"] = cache
    told.put(asked(store(), *numbers))


def test_of_several_processes_one_encodes_and_the_others_wait(cache: Path) -> None:
    context = multiprocessing.get_context("fork")
    output: Any = context.Queue()
    folder = store().folder
    folder.parent.mkdir(parents=True)
    workers = [context.Process(target=_encode, args=(str(cache), range(200), output)) for _ in range(3)]
    with FileLock(f"{folder}.lock"):  # all of them find nothing, and wait
        for worker in workers:
            worker.start()
    result = [output.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join()
    assert sorted(map(len, result)) == [0, 0, 200]
