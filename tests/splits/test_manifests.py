"""The published manifests: frozen, locked and audited."""

from __future__ import annotations

import shutil
from collections import Counter

import pyarrow as pa
import pytest
from farshift import FarshiftError, load
from farshift.core.errors import BadData, BadDefinition, Unavailable, UnknownName
from farshift.loaders.acquire.source import find_source, load_sources
from farshift.loaders.freezing.verify import audit_again, verify_each
from farshift.loaders.split import open_split
from farshift.splits.catalogue import find_manifest, list_manifests, read_published_identities
from farshift.splits.manifest import KINDS, read_manifest
from support import SHARED

FROZEN = [manifest for manifest in list_manifests() if manifest.frozen]
FIRST = ["modadd97/xi35", "optdigits/writers", "prefix_sums/32_to_64", "scan/addprim_jump", "scan/length"]
"""A frozen split of each kind whose source is small; all are proven by `make test-slow`."""


def pulled(name: str):
    """The split's manifest; skips where its source cannot be had on this machine."""
    manifest = find_manifest(name)
    try:
        find_source(manifest.definition.source.name).table()
    except Unavailable as error:
        pytest.skip(str(error))
    return manifest


def test_the_catalogue_is_as_large_as_promised_in_every_kind():
    kinds = Counter(manifest.definition.kind for manifest in FROZEN)
    assert sum(kinds.values()) >= 120
    assert len({manifest.definition.source.name for manifest in FROZEN}) >= 35
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 15, kinds


def test_the_lock_names_every_shipped_manifest_and_its_identity():
    assert read_published_identities() == {manifest.full_name: manifest.identity for manifest in FROZEN}


def test_an_identity_is_that_of_what_the_manifest_says():
    changed = [item.full_name for item in FROZEN if item.definition.computed_identity() != item.identity]
    assert changed == []


def test_every_audit_holds_and_shared_inputs_are_declared():
    for manifest in FROZEN:
        audit = manifest.audit()
        assert audit["holds"], f"{manifest.full_name}: {audit['why']}"
        shared = {pair: count for pair, count in audit["duplicate_inputs"]["across"].items() if count}
        shared = {pair: count for pair, count in shared.items() if pair.startswith("train/")}
        assert shared == manifest.definition.declared.duplicates, manifest.full_name


def test_a_definition_promises_no_rows():
    for manifest in list_manifests():
        if not manifest.frozen:
            assert manifest.definition.parts == {}
            assert not (manifest.folder / "rows.parquet").exists()
            with pytest.raises(BadDefinition, match="is a definition, not yet frozen"):
                manifest.rows(pa.table({}), find_source(manifest.definition.source.name).schema)


@pytest.mark.parametrize("name", FIRST)
def test_a_manifest_proves_from_its_source(name):
    manifest = pulled(name)
    expected = {"name": manifest.full_name, "state": "verified", "identity": manifest.identity, "why": ""}
    assert verify_each([manifest])[0].__dict__ == expected


def _sorts(source) -> set[str]:
    """The sorts of mirrors that a source's files and folders have, or those of the source that it is made from."""
    result = set()
    for item in source.definition.distributions:
        result |= {mirror["sort"] for pin in (*item.files, *item.trees) for mirror in pin.mirrors}
        result |= _sorts(find_source(item.of)) if item.of else set()
    return result


@pytest.mark.slow
def test_every_manifest_proves_from_an_empty_cache(cache):
    """With what package registries, generators and the local mirror give; a source that cannot be had is named."""
    result = {verdict.name: verdict for verdict in verify_each(FROZEN, (SHARED,) if SHARED.exists() else ())}
    assert [verdict for verdict in result.values() if verdict.state == "failed"] == []
    away = {
        find_manifest(name).definition.source.name for name, verdict in result.items() if verdict.state == "unavailable"
    }
    if SHARED.exists():
        # apt knows packages only where its lists have been brought before; an address may be out of reach, and the
        # package of a generator not installed.
        known = load_sources().items()
        assert away <= {name for name, source in known if _sorts(source) - {"npm", "pypi"} or source.lacks}
    generated = {name for name, source in load_sources().items() if not (source.needs_network or source.lacks)}
    assert not away & generated


@pytest.mark.parametrize("name", FIRST)
def test_the_audit_measured_now_is_the_published_one_and_holds(name):
    pulled(name)
    result, agrees = audit_again(name)
    assert result["holds"], result["why"]
    assert agrees


@pytest.mark.parametrize(
    ("plain", "other"),
    [
        ("mode/length", "mode_scratchpad/length"),
        ("addition/carry", "addition_reversed_hinted/carry"),
        ("merge_sort/length", "merge_sort_trace/length"),
    ],
)
def test_an_item_is_in_the_same_part_in_every_format(plain, other):
    for part in find_manifest(plain).definition.parts:
        items = [sorted(load(name, part=part).arrow()["item"].to_pylist()) for name in (plain, other)]
        assert items[0] == items[1]


def test_a_weak_shift_is_called_weak():
    assert "weak" in find_manifest("optdigits/writers").audit_summary()


def test_unknown_names_and_versions_are_refused_with_what_there_is():
    with pytest.raises(UnknownName, match=r"no split named 'scan/lenght': did you mean scan/length"):
        find_manifest("scan/lenght")
    with pytest.raises(FarshiftError, match="scan/length has no version '9': there is scan/length@1"):
        find_manifest("scan/length@9")
    assert find_manifest("scan/length@1").identity == find_manifest("scan/length").identity


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("rows = 16990", "rows = 16991", "was changed"),
        ("at_most = 22", "at_most = 24", "part ood_test is not the published one"),
    ],
)
def test_a_manifest_edited_by_hand_or_a_rule_that_gives_other_rows_is_refused(tmp_path, old, new, complaint):
    shutil.copytree(find_manifest("scan/length").folder, tmp_path / "v1")
    path = tmp_path / "v1" / "split.toml"
    path.write_text(path.read_text().replace(old, new))
    source = find_source("scan")
    with pytest.raises(BadData, match=complaint):
        read_manifest(path).rows(source.table(), source.schema)


def test_shipped_rows_that_were_changed_are_refused(tmp_path):
    import pyarrow.parquet as pq

    manifest = find_manifest("modadd97/xi35")
    shutil.copytree(manifest.folder, tmp_path / "v1")
    path = tmp_path / "v1" / "rows.parquet"
    table = pq.read_table(path)
    labels = table["label"].to_pylist()
    position = next(i for i, label in enumerate(labels) if label is not None)
    labels[position] = (labels[position] + 1) % 97
    pq.write_table(table.set_column(table.column_names.index("label"), "label", pa.array(labels)), path)
    edited = read_manifest(tmp_path / "v1" / "split.toml")
    source = find_source("modadd97")
    with pytest.raises(BadData, match="part train is not the published one"):
        edited.rows(source.table(), source.schema)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(BadData, match=r"rows\.parquet: cannot be read"):
        edited.rows(source.table(), source.schema)


@pytest.mark.parametrize(("name", "system"), [("kepler", "Kepler"), ("double_well", "double well")])
def test_few_shot_adds_32_trajectories_of_the_tested_system_and_changes_nothing_else(name, system):
    without, few = (open_split(f"hamiltonian_few/{name}_{count}") for count in (0, 32))
    for part in ("id_test", "ood_test"):
        assert set(without.part(part).row_ids) == set(few.part(part).row_ids)
    added = set(few.part("train").row_ids) - set(without.part("train").row_ids)
    assert len(added) == 32 and set(few.part("train").row_ids) > set(without.part("train").row_ids)
    assert Counter(few.part("train").arrow(["system"])["system"].to_pylist())[system] == 32
    assert set(few.part("ood_test").arrow(["system"])["system"].to_pylist()) == {system}
