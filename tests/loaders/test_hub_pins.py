"""Pinning the files of a data set on the Hub: commit, sizes and sha256 of what is there, through a Hub's faults."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import pytest
from farshift.core import retry
from farshift.core.errors import BadDefinition, Unavailable
from farshift.loaders.acquire.fetch import fetch_file
from farshift.loaders.acquire.own_source import list_hub_pins
from farshift.splits.manifest import FilePin
from hub_faults import Cut, Meanwhile, Refuse
from hub_rows import TEXTS, Shop, send_clients_to, stocked
from hub_server import REPOSITORY, serving
from pydantic import ValidationError

README = b"# Rows\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[Shop]:
    with serving() as hub, pytest.MonkeyPatch.context() as patch:
        send_clients_to(hub, patch, tmp_path_factory.mktemp("hf"))
        built = stocked(hub, TEXTS, tmp_path_factory.mktemp("shop"))
        built.files["README.md"] = README
        yield built


def test_files_are_pinned_by_content_at_the_commit_of_a_branch_and_can_be_brought(shop, cache):
    commit = shop.restock()
    pins = list_hub_pins(REPOSITORY, "main", ["shards/*.tar", "README.md"])
    assert [pin.name for pin in pins] == sorted(path for path in shop.files if path.endswith((".tar", ".md")))
    shop.hub.commit({})
    for pin in pins:
        content = shop.files[pin.name]
        assert (pin.bytes, pin.sha256) == (len(content), sha256(content).hexdigest())
        assert pin.mirrors == [{"sort": "hub", "repo": REPOSITORY, "revision": commit, "file": pin.name}]
        assert fetch_file(pin).read_bytes() == content


def test_a_branch_that_moves_meanwhile_moves_no_pin(shop):
    commit = shop.restock()
    shop.hub.faults.plan("GET /api/*", Meanwhile(lambda: shop.hub.commit({"shards/other.tar": b"other"})))
    pins = list_hub_pins(REPOSITORY, "main", ["*.tar"])
    assert {pin.mirrors[0]["revision"] for pin in pins} == {commit}
    assert "shards/other.tar" not in {pin.name for pin in pins}


@pytest.mark.parametrize(
    ("repository", "revision", "pattern", "sort"),
    [
        (REPOSITORY, "main", "*.csv", BadDefinition),
        (REPOSITORY, "absent", "*.tar", Unavailable),
        ("farshift/absent", "main", "*.tar", Unavailable),
        ("a/b/c", "main", "*.tar", Unavailable),
    ],
)
def test_what_is_not_there_is_one_error(shop, repository, revision, pattern, sort):
    shop.restock()
    with pytest.raises(sort, match=repository) as refused:
        list_hub_pins(repository, revision, [pattern])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("fault", [Refuse(404), Cut(10), Cut(10, reset=True)])
def test_a_hub_that_is_down_or_whose_connection_breaks_is_one_error(shop, fault, monkeypatch):
    monkeypatch.setattr(retry, "PAUSE", 0.002)
    shop.restock()
    shop.hub.faults.plan("GET /api/*", fault, times=99)
    with pytest.raises(Unavailable, match=f"Hub {REPOSITORY}@main could not be listed") as refused:
        list_hub_pins(REPOSITORY, "main", ["*.tar"])
    assert "\n" not in str(refused.value)
    assert isinstance(fault, Cut) or "404" in str(refused.value)
    shop.hub.faults.clear()


def test_an_error_that_says_nothing_is_named(monkeypatch):
    def silent(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", silent)
    with pytest.raises(Unavailable, match="Hub owner/name@main could not be listed: OSError: OSError"):
        list_hub_pins("owner/name", "main", ["*"])


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a\\b", "a\nb", "", ".", "a//b"])
def test_the_name_of_a_pinned_file_leads_nowhere_else(name):
    with pytest.raises(ValidationError, match="is not a file name"):
        FilePin(name=name, sha256="0" * 64, bytes=1)
    assert FilePin(name="data/train-0.parquet", sha256="0" * 64, bytes=1).name == "data/train-0.parquet"
