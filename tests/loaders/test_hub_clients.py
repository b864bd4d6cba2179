"""What is exported is read from a Hub by the clients people have, row for row, and a source's files come from one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hub_client
import numpy as np
import pytest
from farshift import load
from farshift.loaders.part import Part
from hub_server import Hub, serving

PUBLISHED = {"prefix_sums": ("prefix_sums/32_to_64", "id_test"), "modadd97": ("modadd97/xi35", "id_test")}


@dataclass
class Shop:
    """A Hub with exports of published parts: Parquet files on `main`, shards on the branch `shards`."""

    hub: Hub
    parts: dict[str, Part]
    home: Path


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    parts = {name: load(*where).select(np.arange(0, 600, 2)) for name, where in PUBLISHED.items()}
    files, shards = {"README.md": b"# Rows\n"}, {}
    for name, part in parts.items():
        files[f"{name}/train.parquet"] = part.to_parquet(folder / f"{name}.parquet").read_bytes()
        for path in sorted(part.to_webdataset(folder / name, 100_000).iterdir()):
            shards[f"{name}/{path.name}"] = path.read_bytes()
    with serving() as hub:
        hub.commit(files)
        hub.commit(shards, branch="shards")
        yield Shop(hub, parts, folder / "hf")


def rows(part: Part) -> list[dict]:
    """The rows as JSON has them."""
    return json.loads(json.dumps(part.arrow().to_pylist()))


def shard_names(shop: Shop, name: str) -> list[str]:
    return sorted(path for path in shop.hub.at("shards")[1] if path.startswith(f"{name}/") and path.endswith(".tar"))


PARQUET = """
from datasets import load_dataset
answers["parquet"] = answer = {}
for name in arguments["names"]:
    files = {"train": f"{name}/train.parquet"}
    stored = load_dataset(REPO, data_files=files, split="train")
    streamed = load_dataset(REPO, data_files=files, split="train", streaming=True)
    answer[name] = [stored.to_list(), list(streamed), {key: kind.dtype for key, kind in stored.features.items()}]
"""


def test_the_datasets_library_reads_equal_rows_and_types_streaming_and_not(shop, client_output):
    output = client_output["parquet"]
    for name, part in shop.parts.items():
        stored, streamed, types = output[name]
        assert stored == rows(part)
        assert streamed == rows(part)
        assert types == {column.name: str(column.type) for column in part.arrow().schema}


SHARDS = """
from datasets import load_dataset
files = {"train": "prefix_sums/*.tar"}
streamed = load_dataset(REPO, revision="shards", data_files=files, split="train", streaming=True)
answers["shards"] = [[sample["__key__"], sample["json"]] for sample in streamed]
"""


def test_the_datasets_library_streams_the_shards(shop, client_output):
    output = client_output["shards"]
    part = shop.parts["prefix_sums"]
    assert [sample for _, sample in output] == rows(part)
    assert [key for key, _ in output] == [f"{row:016x}" for row in part.row_ids.tolist()]


def addresses(shop: Shop) -> dict[str, list[str]]:
    names = shard_names(shop, "modadd97")
    assert len(names) > 1
    return {
        "a file server": [shop.hub.plain(name, "shards") for name in names],
        "a redirect": [shop.hub.resolve(name, "shards") for name in names],
        "a command": [f"pipe:curl -s -L {shop.hub.plain(name, 'shards')}" for name in names],
        "the Hub": [f"hf://datasets/farshift/rows@shards/{name}" for name in names],
    }


WEBDATASET = """
import webdataset
answers["webdataset"] = answer = {}
for how, urls in arguments["addresses"].items():
    answer[how] = [sample["json"] for sample in webdataset.WebDataset(urls, shardshuffle=False).decode()]
"""


def test_the_webdataset_library_streams_the_shards_over_http_and_from_the_hub(shop, client_output):
    output = client_output["webdataset"]
    for how in addresses(shop):
        assert output[how] == rows(shop.parts["modadd97"]), how


@pytest.fixture(scope="module")
def client_output(shop: Shop) -> dict:
    """What the clients read, all in one process, for they take seconds to be imported."""
    code = ["answers = {}", PARQUET, SHARDS, WEBDATASET, "print(json.dumps(answers))"]
    arguments = {"names": list(PUBLISHED), "addresses": addresses(shop)}
    return hub_client.run(shop.hub, shop.home, "\n".join(code), **arguments)
