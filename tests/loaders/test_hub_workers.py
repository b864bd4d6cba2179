"""A stream in worker processes and ranks: faults and kills are errors, never a short epoch, and nothing is read twice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from farshift import FarshiftError, stream
from farshift.core import retry
from farshift.core.errors import Unavailable
from hub_faults import Refuse
from hub_rows import SORTS, TEXTS, Batches, Shop, drained, ids, plain, stocked
from hub_server import serving
from torch.utils.data import DataLoader

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[Shop]:
    with serving() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "PAUSE", 0.002)
        yield stocked(hub, TEXTS, tmp_path_factory.mktemp("shop"))


def opened(shop: Shop, sort: str):
    shop.restock()
    return stream(shop.name, shop.part.name, shop.address(sort), memory={"shards": 1 << 18, "parquet": 1 << 15}[sort])


def truth(shop: Shop, size: int) -> list[int]:
    return ids(plain(shop.part.batches(size, seed=0, columns=["row_id"])))


def read(streamed, workers: int) -> tuple[Batches, FarshiftError | None]:
    """What a loader gives, to the end or to an error."""
    accepted, error = drained(DataLoader(streamed, batch_size=None, num_workers=workers))
    # Its traceback would hold the loader, and the loader its workers.
    return accepted, error and error.with_traceback(None)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_fault_in_a_worker_is_the_named_error_and_a_state_goes_on_exactly_there(shop, sort, workers):
    streamed = opened(shop, sort).torch(50, columns=["row_id"])
    shop.hub.faults.plan(f"GET */{sort}/*", Refuse(404), times=99, skip=8)
    accepted, error = read(streamed, workers)
    assert isinstance(error, Unavailable)
    assert "the server answered 404" in str(error)
    resumed = opened(shop, sort).torch(50, columns=["row_id"])
    resumed.load_state_dict(streamed.state_at(len(accepted)))
    rest, error = read(resumed, 1)
    assert error is None
    assert ids(accepted + rest) == truth(shop, 50)


KILLED = """
import json, os, signal, sys
from farshift.loaders.stream.open import stream
from torch.utils.data import DataLoader
name, part, address = sys.argv[1:]
streamed = stream(name, part, address, memory=1 << 18).torch(10)
reading = iter(DataLoader(streamed, batch_size=None, num_workers=2))
for taken, batch in enumerate(reading, 1):
    print(json.dumps([batch["row_id"].tolist(), streamed.state_at(taken)]), flush=True)
    if taken == 5:
        os.kill(reading._workers[1].pid, signal.SIGKILL)
print("an epoch ended")
"""


def test_a_killed_worker_is_an_error_and_the_last_state_gives_the_rest_exactly_once(shop, python):
    shop.restock()
    done = python.run("-c", KILLED, shop.name, shop.part.name, shop.address("shards"), timeout=120)
    assert done.returncode != 0
    # Python may be writing one error when torch's handler of a dead child raises the next: then no traceback is left.
    assert "Error" in done.stderr
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert 5 <= len(steps) < 100, "the epoch was left in the middle"
    resumed = opened(shop, "shards").torch(10, columns=["row_id"])
    resumed.load_state_dict(steps[-1][1])
    rest, error = read(resumed, 0)
    assert error is None
    assert [row for step, _ in steps for row in step] + ids(rest) == truth(shop, 10)
