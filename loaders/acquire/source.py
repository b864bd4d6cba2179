"""Sources: public data sets and generators, pinned by the digest of their rows.

`loaders/sources/<name>.toml` defines a source (schema, row count, row digest, licence) and its distributions, each a
generator or a set of pinned files with a reader. Any distribution that gives the pinned rows can be used.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Item

from ...core.canonical import compute_identity
from ...core.errors import BadData, BadDefinition, MissingGeneratorPackage, Unavailable, UnknownName, get_first_line
from ...core.files import get_cache_root, get_user_home, require_accepted_licence
from ...core.label_access import refuse_labels
from ...core.limits import GENERATED
from ...core.plugins import find_definition, find_plugin_files, load_module, read_all_definitions, read_definition
from ...core.progress import log_message
from ...core.text import format_count
from ...splits.manifest import FilePin, TreePin, UnpinnedFile
from ...splits.rows import (
    compute_ids_and_repeats,
    compute_row_digests,
    compute_set_digest,
    get_digest_prefixes,
    mark_repeated_inputs,
)
from ...splits.schema import Field, Schema
from ..cache.store import load_or_write, map_table, stage_source, write_arrow
from ..files.reader_errors import convert_reader_errors
from ..readers import read_tables
from .expected import CountsDiffer, ExpectedCounts, check_expected
from .fetch import fetch_file, fetch_unpinned_file, get_file_path
from .labels import read_class_names
from .piecewise import build_in_pieces
from .trees import fetch_tree, list_tree_paths

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FieldPin(_StrictModel):
    name: str
    type: str
    role: str


class Distribution(_StrictModel):
    """One way to obtain the rows: a `generator`; or `files` and `trees` (folders of many files) with the `reader` that
    turns them into rows; or another source (`of`) with the `derivation` that computes these rows from it."""

    name: str
    generator: str = ""
    reader: str = ""
    of: str = ""
    derivation: str = ""
    options: dict[str, Any] = {}
    files: list[FilePin | UnpinnedFile] = []
    trees: list[TreePin] = []


class SourceDefinition(_StrictModel):
    """The content of `<name>.toml`. Without `rows` and `digest` it defines public data that are not pinned: the first
    pull checks the rows against the `expected` counts and pins them in the user's home. A licence to `accept` is shown
    first, with its `terms`. `categories`: fields whose integers are codes without an order (baselines treat other
    integers as numbers). `class_names`: the names of the classes 0, 1 .. of a field."""

    name: str = Item(pattern=r"^[a-z0-9_]+$", description="lower-case letters, digits and _")
    version: int = Item(ge=1)
    title: str
    licence: str
    citation: str
    homepage: str = ""
    notes: str = ""
    accept: str = ""
    terms: str = ""
    expected: ExpectedCounts | None = None
    rows: int = 0
    digest: str = ""
    categories: list[str] = []
    class_names: dict[str, list[str]] = {}
    fields: list[FieldPin]
    distributions: list[Distribution] = Item(min_length=1)


@dataclass(frozen=True)
class Source:
    """A source and its definition file."""

    definition: SourceDefinition
    path: Path

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def schema(self) -> Schema:
        fields = (Field(pin.name, pin.type, pin.role) for pin in self.definition.fields)  # type: ignore[arg-type]
        return Schema(tuple(fields))

    def _list_origins(self) -> list[Distribution]:
        """The distributions, and instead of derived ones those of the source that they are derived from."""
        origins = []
        for distribution in self.definition.distributions:
            base = find_base_source(distribution).definition.distributions if distribution.of else [distribution]
            origins += base
        return origins

    @property
    def needs_network(self) -> bool:
        """Whether no distribution is a generator, or derived from one (a local mirror may still serve)."""
        return not any(origin.generator for origin in self._list_origins())

    @property
    def extra(self) -> str:
        """The extra that every generator of the source requires; empty if one requires none."""
        required = [find_requirement(origin.generator)[1] for origin in self._list_origins() if origin.generator]
        return required[0] if required and all(required) else ""

    @property
    def lacks(self) -> str:
        """`extra` if its packages are not installed, else empty."""
        packages = [find_requirement(origin.generator)[0] for origin in self._list_origins() if origin.generator]
        return "" if any(not package or find_spec(package) for package in packages) else self.extra

    @property
    def downloads(self) -> bool:
        """Whether a distribution's files can be downloaded; otherwise the user has to provide them (`--data`)."""
        files = [[*origin.files, *origin.trees] for origin in self._list_origins() if not origin.generator]
        return any(all(pin.mirrors for pin in pins) for pins in files)

    @property
    def cached_at(self) -> Path:
        # The name includes the schema: roles determine the row ids, but are not part of a row's digest.
        shape = compute_identity(self.schema.records())[:8]
        name = f"{self.name}-v{self.definition.version}-{self.definition.digest[:16]}-{shape}.arrow"
        return get_cache_root() / "sources" / name

    def class_names(self, field: str) -> list[str]:
        """Return the names of the classes 0, 1 .. of a field if the data name them or a reader made them from texts;
        else an empty list."""
        if field in self.definition.class_names:
            return self.definition.class_names[field]
        for distribution in self.definition.distributions:
            texts = distribution.options.get("maps", {}).get(field)
            if isinstance(texts, list):
                return read_class_names(texts)
        return []

    def table(self, own_folders: tuple[Path, ...] = ()) -> pa.Table:
        """Return the rows in ascending row id, memory-mapped, with `row_id` and `check`; built once, then cached.
        A source that is not pinned yet is built each time.
        """
        refuse_labels(f"source {self.name}")
        if self.definition.digest:
            return load_or_write(self.cached_at, lambda target: self.write(target, own_folders), map_table)
        with stage_source(f"{self.name}-unpinned") as path:
            self.write(path, own_folders)
            return map_table(path)

    def require_licence(self) -> None:
        """Raise `LicenceNotAccepted` if the licence has to be accepted and the user has not done so."""
        if self.definition.accept:
            require_accepted_licence(self.definition.accept, f"source {self.name}", self.definition.terms)

    def write(self, target: Path, own_folders: tuple[Path, ...] = ()) -> tuple[int, str, Distribution]:
        """Write the rows of the first available distribution that has the pinned digest, or without one the expected
        counts, to an Arrow file `target`. Returns their number and digest, and the distribution with all its files
        pinned. Raises `LicenceNotAccepted` if the licence has to be accepted first."""
        refuse_labels(f"source {self.name}")
        self.require_licence()
        reasons = []
        for distribution in self.definition.distributions:
            try:
                digest, pinned = self.write_from(distribution, target, own_folders)
                rows = map_table(target)
                if self.definition.expected and not self.definition.digest:
                    check_expected(self.definition.expected, rows, f"source {self.name} ({distribution.name})")
            except (Unavailable, BadData) as error:
                if (
                    isinstance(error, MissingGeneratorPackage | CountsDiffer)
                    and len(self.definition.distributions) == 1
                ):
                    raise
                reasons.append(f"{distribution.name}: {error}")
                continue
            if not self.definition.digest or digest == self.definition.digest:
                return rows.num_rows, digest, pinned
            differ = f"{rows.num_rows} rows of digest {digest[:12]}.., not {self.definition.rows} of the pinned one"
            generator = load_generator(distribution.generator) if distribution.generator else None
            maker = getattr(generator, "maker", None)
            by = str(maker(**distribution.options)) if maker else ""  # the package and its version
            reasons.append("; ".join(filter(None, (f"{distribution.name}: gives {differ}", by))))
            log_message(f"{self.name}: {distribution.name} differs from the pinned rows; trying the next distribution")
        raise Unavailable(f"source {self.name}: {' | '.join(reasons)}")

    def write_from(
        self, distribution: Distribution, target: Path, own_folders: tuple[Path, ...] = ()
    ) -> tuple[str, Distribution]:
        """Write the rows of a distribution to an Arrow file `target`; from files, in bounded memory. Returns their
        digest, and the distribution with all its files pinned."""
        if distribution.reader:
            where = f"source {self.name}, {distribution.name}"
            pinned, files = fetch_files(distribution, own_folders)
            tables = read_tables(distribution.reader, {"files": files, **distribution.options}, self.schema, where)
            return build_in_pieces(tables, self.schema, where, target), pinned
        table, digest = add_row_ids(self.compute_rows(distribution, own_folders), self.schema)
        write_arrow(table, target)
        return digest, distribution

    def compute_rows(self, distribution: Distribution, own_folders: tuple[Path, ...] = ()) -> pa.Table:
        """Return the rows of a generator or a derivation, cast to the schema, in the order in which it makes them."""
        where = f"source {self.name}, {distribution.name}"
        if distribution.generator:
            _refuse_large_numbers(distribution.options, where)
            call, arguments = load_generator(distribution.generator).rows, distribution.options
        else:
            call = load_module("loaders/derivations", distribution.derivation, "derivation").rows
            base = find_base_source(distribution).table(own_folders)
            arguments = {"base": base, "schema": self.schema, **distribution.options}
        with convert_reader_errors("its data"):
            try:
                table = call(**arguments)
            except (LookupError, TypeError, ValueError) as error:  # of options that it does not have
                message = f"{get_first_line(error)} ({type(error).__name__})"
                raise BadDefinition(f"{where}: {message}") from error
            return self.schema.conform(table, where)


def _refuse_large_numbers(options: Any, where: str) -> None:
    """Raise `BadDefinition` if a generator's options ask for more than it should make."""
    for name, value in options.items() if isinstance(options, dict) else enumerate(options):
        if isinstance(value, dict | list):
            _refuse_large_numbers(value, f"{where}: {name}" if isinstance(options, dict) else where)
        elif isinstance(value, int) and abs(value) > GENERATED:
            raise BadDefinition(f"{where}: {name} = {value:,}: a generator's numbers are at most {GENERATED:,}")


def load_generator(name: str) -> ModuleType:
    """Return the module of a generator. Raises `UnknownName` if there is none."""
    return load_module("loaders/generators", name, "generator")


def find_requirement(generator: str) -> tuple[str, str]:
    """Return (module, extra) of the optional package that a generator imports; two empty strings if it imports none."""
    requirement: tuple[str, str] = getattr(load_generator(generator), "REQUIRES", ("", ""))
    return requirement


def find_base_source(distribution: Distribution) -> Source:
    """Return the source from which a distribution is derived."""
    base = find_source(distribution.of)
    if any(base_distribution.of for base_distribution in base.definition.distributions):
        raise BadDefinition(f"distribution {distribution.name!r}: source {base.name} is itself derived: name its base")
    return base


def fetch_files(distribution: Distribution, own_folders: tuple[Path, ...] = ()) -> tuple[Distribution, dict[str, Any]]:
    """Fetch a distribution's files and trees. Returns the distribution with all of them pinned, and the files by name,
    each a path, or the `ArchiveFiles` of a tree."""
    files: dict[str, Any] = {}
    pins: list[FilePin] = []
    for pin in distribution.files:
        if isinstance(pin, UnpinnedFile):
            pin, files[pin.name] = fetch_unpinned_file(pin, own_folders)
        else:
            files[pin.name] = fetch_file(pin, own_folders)
        pins.append(pin)
    trees = []
    for tree in distribution.trees:
        tree, files[tree.name] = fetch_tree(tree, own_folders)
        trees.append(tree)
    return distribution.model_copy(update={"files": pins, "trees": trees}), files


@dataclass(frozen=True)
class DownloadSize:
    """bytes: total of the files with a stated size. unknown: the other files and folders."""

    bytes: int = 0
    unknown: tuple[str, ...] = ()


def compute_download_size(name: str) -> DownloadSize:
    """Return what the first distribution of a source has to download, as far as sizes are stated: nothing if its rows
    or files are cached, if they are the user's own, or if it is generated."""
    source = find_source(name)
    distribution = source.definition.distributions[0]
    if distribution.generator or (source.definition.digest and source.cached_at.exists()):
        return DownloadSize()
    if distribution.of:
        return compute_download_size(find_base_source(distribution).name)
    cached = (isinstance(pin, FilePin) and get_file_path(pin.sha256).exists() for pin in distribution.files)
    files = [pin for pin, stored in zip(distribution.files, cached, strict=True) if pin.mirrors and not stored]
    unknown = [pin.name for pin in files if pin.bytes is None]
    for tree in distribution.trees:
        if tree.mirrors and not any(path.exists() for path in list_tree_paths(tree)):
            unknown.append(
                f"{tree.name}, a folder of {tree.files:,} files" if tree.files else f"the folder {tree.name}"
            )
    return DownloadSize(sum(pin.bytes or 0 for pin in files), tuple(unknown))


def add_row_ids(table: pa.Table, schema: Schema) -> tuple[pa.Table, str]:
    """Return the rows in ascending row id, with `row_id` and `check`, and the digest of the set."""
    import numpy as np

    (ids, repeated), digests = compute_ids_and_repeats(table, schema), compute_row_digests(table, schema)
    order = np.argsort(ids)
    table = table.take(order).combine_chunks()
    table = table.append_column("row_id", [ids[order]]).append_column("check", [get_digest_prefixes(digests)[order]])
    return mark_repeated_inputs(table, np.sort(ids[repeated])), compute_set_digest(digests)


def find_row_positions(assigned: pa.Table, rows: pa.Table, what: str) -> NDArray[np.int64]:
    """Return the position of each manifest row in the source's table, which is in ascending row id, shape (rows,).
    Raises `BadData` if a row is absent from the source or its content changed."""
    import numpy as np

    known, ids = rows["row_id"].to_numpy(), assigned["row_id"].to_numpy()
    positions: NDArray[np.int64] = np.searchsorted(known, ids)
    present = positions < len(known)
    present[present] = known[positions[present]] == ids[present]
    wrong = ~present
    absent = int(wrong.sum())
    wrong[present] = rows["check"].to_numpy()[positions[present]] != assigned["check"].to_numpy()[present]
    if wrong.any():
        first = ", ".join(f"{value:016x}" for value in ids[wrong][:3])
        count = format_count(absent, "row is", "rows are")
        raise BadData(f"{what}: {count} not in the source and {wrong.sum() - absent} changed (first: {first})")
    return positions


def read_source(path: Path) -> Source:
    """Read a source's TOML file. Raises `BadDefinition`, which lists the errors in it."""
    source = Source(read_definition(path, SourceDefinition), path)
    try:
        source.schema  # noqa: B018  (its own checks)
    except BadDefinition as error:
        raise BadDefinition(f"{path}: {error}") from error
    if unknown := sorted({*source.definition.categories} - {pin.name for pin in source.definition.fields}):
        raise BadDefinition(f"{path}: categories: there is no field {unknown[0]!r}")
    for distribution in source.definition.distributions:
        ways = [way for way in (distribution.generator, distribution.reader, distribution.derivation) if way]
        if len(ways) != 1:
            raise BadDefinition(
                f"{path}: distribution {distribution.name!r} needs exactly one of generator, reader and derivation"
            )
        if bool(distribution.of) != bool(distribution.derivation) or distribution.of == source.name:
            raise BadDefinition(
                f"{path}: distribution {distribution.name!r}: `of` names another source, for a `derivation`"
            )
        if not source.definition.digest and source.definition.expected is None and distribution.reader:
            first = [file.name for file in distribution.files if isinstance(file, UnpinnedFile)]
            first += [tree.name for tree in distribution.trees if not tree.tree]
            if first:
                raise BadDefinition(
                    f"{path}: {first[0]} is not pinned, so [expected] has to give the counts of its rows"
                )
    return source


def load_sources() -> dict[str, Source]:
    """Return all sources by name, of the package and of `FARSHIFT_PATH`. A source without a pin has the one of the
    user's home, if there is one."""
    return {
        name: apply_own_pin(source)
        for name, source in read_all_definitions("loaders/sources", read_source, "source").items()
    }


def find_source(name: str) -> Source:
    source = find_definition("loaders/sources", name, read_source, "source")
    if source is None:
        raise UnknownName("source", name, load_sources(), "(for a source of your own, add its folder to FARSHIFT_PATH)")
    return apply_own_pin(source)


def read_categories(name: str) -> list[str]:
    """Return the fields of a source whose integers are codes without an order; none if the source is private to another
    machine."""
    return next(
        (read_source(path).definition.categories for path in find_plugin_files("loaders/sources", f"{name}.toml")), []
    )


class OwnPin(_StrictModel):
    """The content of `<home>/sources/<name>-v<version>.toml`: the rows of the first pull of a definition."""

    definition: str
    rows: int
    digest: str
    distribution: Distribution


def make_own_pin_path(source: Source) -> Path:
    """Return the path in the user's home of the pin of a source whose definition has none."""
    return get_user_home() / "sources" / f"{source.name}-v{source.definition.version}.toml"


def compute_definition_digest(definition: SourceDefinition) -> str:
    """Return the digest of everything that determines a definition's rows. If it changes, the pin in the user's home is
    out of date."""
    record = definition.model_dump(include={"name", "version", "fields", "expected"}, exclude_none=True)
    ways = [
        distribution.model_dump(
            include={"name", "reader", "options", *(("of", "derivation") if distribution.of else ())}
        )
        for distribution in definition.distributions
    ]
    return compute_identity({"kept": record, "ways": ways})


def apply_own_pin(source: Source) -> Source:
    """Return the source with the pin of the user's home if there is one, else unchanged."""
    definition = source.definition
    if definition.digest or not (path := make_own_pin_path(source)).exists():
        return source
    own = read_definition(path, OwnPin)
    if own.definition != compute_definition_digest(definition):
        return source
    others = [distribution for distribution in definition.distributions if distribution.name != own.distribution.name]
    pinned = {"rows": own.rows, "digest": own.digest, "distributions": [own.distribution, *others]}
    return Source(definition.model_copy(update=pinned), source.path)
