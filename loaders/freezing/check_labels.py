"""Check the inferred labels against those of a rule, before any file of a split is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import BadDefinition, shorten_list
from ...core.progress import log_message
from ...core.text import format_count, write_inline
from ...splits.assignment import PARTS
from ...splits.manifest import SplitDefinition
from ..acquire.source import Source, find_row_positions

if TYPE_CHECKING:
    import pyarrow as pa


def check_labels(definition: SplitDefinition, source: Source, rows: pa.Table, assigned: pa.Table) -> None:
    """Raise `BadDefinition` if a rule assigns labels of another field whose classes are numbered differently, or if
    `label_names` are not the names of the label's classes. Classes without training rows, or without any row, are
    logged. rows: of the source; assigned: by the rule (`splits.manifest.assign_rows`)."""
    if "label" in assigned.column_names:
        named = set(_collect_texts(definition.parameters)) - {definition.label}
        for other in source.schema.fields:
            if other.name in named and (other.role == "label" or other.name == definition.parameters.get("given")):
                _check_numbering(definition, source, other.name)
    if names := definition.label_names or source.class_names(definition.label):
        _check_names(definition, names, source, rows, assigned)
        report_absent_classes(definition, rows, assigned, names)


def _collect_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _collect_texts(item)


def _check_numbering(definition: SplitDefinition, source: Source, other: str) -> None:
    label, split = definition.label, definition.name
    numbers, others = _read_numbers(source, label), _read_numbers(source, other)
    common = numbers.keys() & others.keys()
    if numbers and others and not (common and all(numbers[text] == others[text] for text in common)):
        texts = list(dict.fromkeys([*numbers, *others]))
        maps = write_inline({"maps": {label: texts, other: texts}})
        raise BadDefinition(
            f"{split}: the rule assigns labels of {other!r} to {label!r}, but their classes are numbered differently "
            f"({shorten_list(list(numbers))}; {shorten_list(list(others))}): set options = {maps} in [data] (with a "
            "nested list if two texts are one class)"
        )
    if bool(numbers) != bool(others):  # if neither has names, the data have numbers themselves
        words, counts = (label, other) if numbers else (other, label)
        order = shorten_list([f"{number} {text}" for text, number in (numbers or others).items()])
        log_message(f"{split}: the integers of {counts!r} are taken as the classes of {words!r}: {order}")


def _read_numbers(source: Source, field: str) -> dict[str, int]:
    """The numbers of a label's texts; empty if the data have numbers without names."""
    maps = (distribution.options.get("maps", {}).get(field) for distribution in source.definition.distributions)
    levels = source.definition.class_names.get(field) or next(filter(None, maps), [])
    if isinstance(levels, dict):
        return levels
    same = [[level] if isinstance(level, str) else level for level in levels]
    return {text: number for number, texts in enumerate(same) for text in texts}


def _check_names(
    definition: SplitDefinition, names: Sequence[str], source: Source, rows: pa.Table, assigned: pa.Table
) -> None:
    import pyarrow as pa

    where, label = f"{definition.name}: label_names", definition.label
    if len(set(names)) < len(names):
        raise BadDefinition(f"{where}: a name occurs twice: each class needs its own")
    if not pa.types.is_integer(kind := rows[label].type) and not pa.types.is_boolean(kind):
        raise BadDefinition(
            f'{where} requires classes, but {label!r} is {source.schema[label].type}: classes = ["{label}"] in [data] '
            "turns it into classes"
        )
    if (texts := source.class_names(label)) and len(texts) != len(names):
        raise BadDefinition(
            f"{where} has {len(names)} names, but {label!r} has {len(texts)} classes ({shorten_list(texts)}): give one "
            "name for each, in order"
        )
    if (highest := find_highest_class(definition, rows, assigned)) >= len(names):
        count = format_count(len(names), "class has a name", "classes have names")
        raise BadDefinition(
            f"{definition.name}: {label!r} has, or is assigned by the rule, the class {highest}, but {count} "
            f"({shorten_list(list(names))}): label_names names each class from 0, and a rule's `classes` is their "
            "number"
        )


def find_highest_class(definition: SplitDefinition, rows: pa.Table, assigned: pa.Table) -> int:
    """Return the highest class of a label, in the data or assigned by the rule. Raises `BadDefinition` for a class
    below 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    both = (rows[definition.label], _read_given_labels(definition, rows, assigned))
    ends = [pc.min_max(values.cast(pa.int64())).as_py() for values in both]
    if (lowest := min(end["min"] for end in ends)) < 0:
        raise BadDefinition(
            f"{definition.name}: the label {definition.label!r} has the class {lowest}: classes are integers "
            f'from 0; classes = ["{definition.label}"] in [data] numbers the values that occur'
        )
    return int(max(end["max"] for end in ends))


def report_absent_classes(
    definition: SplitDefinition, rows: pa.Table, assigned: pa.Table, names: Sequence[str] = ()
) -> None:
    """Log the classes that occur in other parts but not in training, which no model can learn; and the `names` that no
    row has."""
    import pyarrow.compute as pc

    given = _read_given_labels(definition, rows, assigned)
    trained = pc.unique(given.filter(pc.equal(assigned["part"], "train")))
    unseen = pc.invert(pc.is_in(given, trained))
    where = f"{definition.name}: the label {definition.label!r}"
    if pc.any(unseen).as_py():
        unseen_parts = assigned["part"].filter(unseen)
        counts = [(part, pc.sum(pc.equal(unseen_parts, part)).as_py()) for part in PARTS]
        parts = ", ".join(f"{format_count(count, 'row')} of {part}" for part, count in counts if count)
        codes = sorted(pc.unique(given.filter(unseen)).to_pylist())
        classes = shorten_list([names[code] if names else str(code) for code in codes])
        log_message(f"{where} has classes without training rows ({parts}): {classes}")
    occurring = set(pc.unique(given).to_pylist()) | set(pc.unique(rows[definition.label]).to_pylist())
    if absent := [name for number, name in enumerate(names) if number not in occurring]:
        log_message(f"{where} has classes without rows: {shorten_list(absent)}")


def _read_given_labels(definition: SplitDefinition, rows: pa.Table, assigned: pa.Table) -> pa.ChunkedArray:
    """The label that training sees for each row of a split: the rule's, if it assigns one."""
    import pyarrow.compute as pc

    true = rows[definition.label].take(find_row_positions(assigned, rows, definition.name))
    if "label" not in assigned.column_names or assigned["label"].null_count == assigned.num_rows:
        return true
    return pc.coalesce(assigned["label"].cast(true.type), true)
