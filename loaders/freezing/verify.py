"""Verify frozen splits: from a source's bytes to each manifest's identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.engines import map_jobs
from ...core.errors import BadData, FarshiftError, Unavailable
from ...core.files import get_cache_root
from ...core.plugins import PACKAGE
from ...core.progress import report_progress
from ...splits.audit import audit_split, is_same_audit
from ...splits.catalogue import find_manifest, read_published_identities
from ...splits.manifest import Manifest, add_given_labels
from ...splits.rows import compute_row_digests, compute_row_ids, compute_set_digest, get_digest_prefixes
from ..acquire.source import Source, find_row_positions, find_source
from .freeze import write_audit

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Verdict:
    """The result of verifying a manifest: `verified`, `failed` or `unavailable` (its data are not available)."""

    name: str
    state: str
    identity: str
    why: str


def verify_each(manifests: Sequence[Manifest], own_folders: tuple[Path, ...] = ()) -> list[Verdict]:
    """Verify manifests from their sources' rows: recompute every row id and digest from content, and check the source's
    digest, the rule or the shipped rows, each part's digest, the identity, and `manifests.lock`. The rows of a source
    are verified once, and sources in parallel on all cores. Returns the verdicts in the order of the manifests."""
    by_source: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        by_source.setdefault(manifest.definition.source.name, []).append(manifest)
    verdicts_by_name: dict[str, Verdict] = {}
    # Sources with most manifests first, so that a long one does not start last.
    groups = sorted(by_source.values(), key=lambda group: -len(group))
    for verdicts in map_jobs(partial(_verify_source, own_folders), groups):
        verdicts_by_name |= {verdict.name: verdict for verdict in verdicts}
        report_progress("splits verified", len(verdicts_by_name), len(manifests))
    return [verdicts_by_name[manifest.full_name] for manifest in manifests]


def _verify_source(own_folders: tuple[Path, ...], manifests: list[Manifest]) -> list[Verdict]:
    """The verdicts on manifests of one source."""
    try:
        source = find_source(manifests[0].definition.source.name)
        rows = _prove_rows(source, own_folders)
    except FarshiftError as error:
        return [_make_verdict(manifest, error) for manifest in manifests]
    verdicts = []
    for manifest in manifests:
        try:
            _prove_manifest(manifest, source, rows)
            verdicts.append(_make_verdict(manifest))
        except FarshiftError as error:
            verdicts.append(_make_verdict(manifest, error))
    return verdicts


def _make_verdict(manifest: Manifest, error: FarshiftError | None = None) -> Verdict:
    state = "verified" if error is None else "unavailable" if isinstance(error, Unavailable) else "failed"
    return Verdict(manifest.full_name, state, manifest.identity, "" if error is None else str(error))


def _prove_rows(source: Source, own_folders: tuple[Path, ...]) -> pa.Table:
    """A source's rows, with every id and check recomputed from content, and checked against the pinned digest."""
    import numpy as np

    rows = source.table(own_folders)
    fields = rows.select([field.name for field in source.schema.fields])
    digests = compute_row_digests(fields, source.schema)
    actual = (rows.num_rows, compute_set_digest(digests))
    if actual != (source.definition.rows, source.definition.digest):
        raise BadData(
            f"source {source.name}: {actual[0]} rows of digest {actual[1][:12]}.., not the pinned ones; "
            f"remove {get_cache_root() / 'sources'} to build it again"
        )
    ids = compute_row_ids(fields, source.schema)
    # Rows that are equal in every field are interchangeable, so the assignment of their ids does not matter.
    order = np.argsort(ids)
    if not np.array_equal(ids[order], rows["row_id"].to_numpy()):
        raise BadData(f"source {source.name}: the cached row ids do not match the rows")
    if not np.array_equal(get_digest_prefixes(digests)[order], rows["check"].to_numpy()):
        raise BadData(f"source {source.name}: the cached row checksums do not match the rows")
    return rows


def _prove_manifest(manifest: Manifest, source: Source, rows: pa.Table) -> None:
    if source.definition.digest != manifest.definition.source.digest:
        raise BadData(
            f"{manifest.full_name} pins source digest {manifest.definition.source.digest[:12]}.., "
            f"but {source.path.name} has {source.definition.digest[:12]}.."
        )
    find_row_positions(manifest.rows(rows, source.schema), rows, manifest.full_name)
    published = read_published_identities().get(manifest.full_name, "")
    shipped = manifest.folder.is_relative_to(PACKAGE)
    if published != manifest.identity and (shipped or published):
        raise BadData(
            f"{manifest.full_name}: manifests.lock has another identity, or none: a new split is built in the "
            "repository without --out"
        )


def audit_again(name: str, own_folders: tuple[Path, ...] = ()) -> tuple[dict[str, Any], bool]:
    """Measure a frozen split's audit again. Returns it, and whether it agrees with the published one."""
    manifest = find_manifest(name)
    audit_record = _measure_audit(manifest, own_folders)
    return audit_record, is_same_audit(audit_record, manifest.audit())


def audit_each(
    manifests: Sequence[Manifest], own_folders: tuple[Path, ...] = (), write: bool = False
) -> list[dict[str, Any]]:
    """Audit manifests again, on all cores; with `write`, valid results replace the published audits. Returns for each
    its `name`, whether it `holds` and `agrees` with the published audit, and `why`."""
    outcomes = []
    for done, outcome in enumerate(map_jobs(partial(_audit_manifest, own_folders, write), manifests)):
        report_progress("splits audited", done + 1, len(manifests))
        outcomes.append(outcome)
    return outcomes


def _audit_manifest(own_folders: tuple[Path, ...], write: bool, manifest: Manifest) -> dict[str, Any]:
    try:
        audit_record = _measure_audit(manifest, own_folders)
    except FarshiftError as error:
        return {"name": manifest.full_name, "holds": False, "agrees": False, "why": str(error)}
    holds, agrees = bool(audit_record["holds"]), is_same_audit(audit_record, manifest.audit())
    if write and holds and not agrees:
        write_audit(manifest.folder, audit_record)
    return {"name": manifest.full_name, "holds": holds, "agrees": agrees, "why": str(audit_record["why"])}


def _measure_audit(manifest: Manifest, own_folders: tuple[Path, ...]) -> dict[str, Any]:
    source = find_source(manifest.definition.source.name)
    rows = source.table(own_folders)
    return add_given_labels(audit_split(manifest.definition, rows, manifest.rows(rows, source.schema), source.schema))
