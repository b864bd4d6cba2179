"""What is exported is read from a Hub by the clients people have, row for row, and a source's files come from one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import hub_client
import numpy as np
import pytest
from farshift import load
from farshift.loaders.acquire.source import find_source
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


MOVED = """
from datasets import load_dataset
answers["moved"] = answer = []
for revision in (arguments["older"], "moving"):
    answer.append(load_dataset(REPO, revision=revision, data_files="train.jsonl", split="train")["n"][:])
"""


@pytest.fixture(scope="module")
def client_output(shop: Shop) -> dict:
    """What the clients read, all in one process, for they take seconds to be imported."""
    older = shop.hub.commit({"train.jsonl": b'{"n": 1}\n'}, branch="moving")
    shop.hub.commit({"train.jsonl": b'{"n": 2}\n{"n": 3}\n'}, branch="moving")
    code = ["answers = {}", PARQUET, SHARDS, WEBDATASET, MOVED, "print(json.dumps(answers))"]
    arguments = {"names": list(PUBLISHED), "addresses": addresses(shop), "older": older}
    return hub_client.run(shop.hub, shop.home, "\n".join(code), **arguments)


def test_a_pinned_commit_stays_what_it_was_when_its_branch_moves(client_output):
    assert client_output["moved"] == [[1], [2, 3]]


SOURCE = """
name = "scan_from_hub"
version = 1
rows = {rows}
digest = "{digest}"
title = "SCAN from a Hub"
licence = "BSD"
citation = "Lake and Baroni 2018, arXiv 1711.00350"
fields = [{{ name = "command", type = "string", role = "input" }}, {{ name = "actions", type = "string", role = "label" }}]

[[distributions]]
name = "tasks.txt"
reader = "table"
options = {{ format = "lines", pattern = "^IN: (?P<command>.+) OUT: (?P<actions>.+)$" }}

[[distributions.files]]
name = "tasks.txt"
sha256 = "{sha256}"
bytes = {bytes}
mirrors = [{{ sort = "hub", repo = "farshift/rows", revision = "{commit}", file = "tasks.txt" }}]
"""


def test_a_source_is_built_from_files_on_the_hub_to_the_published_digest(shop, tmp_path, monkeypatch):
    scan = find_source("scan")
    lines = [
        f"IN: {row['command']} OUT: {row['actions']}\n"
        for row in scan.table().select(["command", "actions"]).to_pylist()
    ]
    content = "".join(lines).encode()
    commit = shop.hub.commit({"tasks.txt": content}, branch="tasks")
    shop.hub.commit({"tasks.txt": content[:-1]}, branch="tasks")
    pins = {"rows": scan.definition.rows, "digest": scan.definition.digest, "commit": commit}
    pins |= {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    path = tmp_path / "loaders" / "sources" / "scan_from_hub.toml"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE.format(**pins))
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    output = hub_client.run(
        shop.hub,
        shop.home,
        """
from farshift.loaders.acquire.source import find_source
table = find_source("scan_from_hub").table()
print(json.dumps([table.num_rows, [f"{row:016x}" for row in table["row_id"].to_pylist()[:100]]]))
""",
    )
    assert output == [scan.definition.rows, [f"{row:016x}" for row in scan.table()["row_id"].to_pylist()[:100]]]
    assert any(request.path.endswith(f"/resolve/{commit}/tasks.txt") for request in shop.hub.requests)
