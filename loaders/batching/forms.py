"""In what form pictures and sounds are handed out: as the files they are, decoded, or as a network reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, FarshiftError
from ...splits.schema import Schema
from ..decoders import decoder
from .encoded import BadFile, BadSound, is_encoded, is_pixels, is_sounds
from .one_picture import Given, each, opened
from .pictures import decoded
from .sounds import samples, sound_decoder
from .transform import Transform


@runtime_checkable
class PictureTransform(Protocol):
    """Anything that makes arrays of pictures: `Transform`, or a model's own processor."""

    def pixels(self, given: Given) -> NDArray[Any]:
        """Pictures, encoded or as arrays, to an array (n, ..)."""
        ...


Pictures: TypeAlias = "str | int | PictureTransform"
"""`bytes`, the files as they are; `PIL`, images of Pillow in RGB; a side in pixels, uint8 (n, side, side, 3), resized
whatever their proportions; the text of a `Transform`, float32 (n, 3, height, width); or what has `pixels`."""
Sounds: TypeAlias = "str | int"
"""`bytes`, the files as they are; or a rate: samples a second, float32 from -1 to 1, one channel (`sounds.samples`)."""

Convert: TypeAlias = "Callable[[Given], NDArray[Any]]"


_BLANK = (32, 32, 3)
"""The shape of a picture that stands for one that is not there."""


def picture_form(asked: Pictures) -> Convert | None:
    """What makes the form `asked` of pictures; None for files as they are. `FarshiftError` for another form."""
    if isinstance(asked, str):
        if asked == "bytes":
            return None
        return _images if asked == "PIL" else Transform(asked).pixels
    if isinstance(asked, PictureTransform):
        return asked.pixels
    if not isinstance(asked, int) or isinstance(asked, bool) or not 0 < asked <= 4096:
        raise FarshiftError(
            f"pictures = {asked!r}: ask for 'bytes', 'PIL', a side in pixels (224), or a transform ('imagenet')"
        )
    return lambda given: _sized(given, asked)


def sound_form(asked: Sounds) -> Convert | None:
    """What makes the form `asked` of encoded sounds; None for files as they are. `FarshiftError` for another form."""
    if asked == "bytes":
        return None
    if not isinstance(asked, int) or isinstance(asked, bool) or not 0 < asked <= 768_000:
        raise FarshiftError(f"sounds = {asked!r}: ask for 'bytes', or for samples at a rate a second (16000)")
    return lambda given: _heard(given, asked)


def _images(given: Given) -> NDArray[Any]:
    found = np.empty(len(given), object)
    for place in range(len(given)):
        found[place] = opened(given, place)
    return found


def _sized(given: Given, side: int) -> NDArray[np.uint8]:
    if isinstance(given, np.ndarray) and is_encoded(given):
        return decoded(given, side)
    import PIL.Image

    by = PIL.Image.Resampling.BILINEAR
    return each(given, lambda picture: np.asarray(picture.resize((side, side), by)))


def _heard(given: Given, rate: int) -> NDArray[Any]:
    found = np.empty(len(given), object)
    for place, content in enumerate(given):
        try:
            found[place] = samples(content, rate, "")
        except BadData as error:
            raise BadSound.at(place, len(given), str(error).removeprefix(" cannot be read as WAV: ")) from error
    return found


@dataclass(frozen=True)
class Forms:
    """What a model or a training loop asks for. Who asks for nothing gets columns as they are: encoded files as
    `bytes`, and pictures that are arrays (uint8 of two or three axes) as arrays. files_only: arrays stay arrays, also
    where it asks for another form of pictures."""

    pictures: Pictures = "bytes"
    sounds: Sounds = "bytes"
    files_only: bool = False

    @classmethod
    def of(cls, model: Any) -> Forms:
        """What a model asks for: an adapter by `forms`, a user's own by `pictures` and `sounds`."""
        found = getattr(model, "forms", None)
        if isinstance(found, Forms):
            return found
        return cls(getattr(model, "pictures", "bytes"), getattr(model, "sounds", "bytes"))

    def checked(self) -> Forms:
        """These forms; `FarshiftError` where one is none."""
        picture_form(self.pictures), sound_form(self.sounds)
        return self

    def given(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The columns in these forms. `BadFile` for a file that cannot be decoded, `FarshiftError` where what is asked
        for is no form."""
        changed = {name: convert(columns[name]) for name, convert in self._changes(columns)}
        return {**columns, **changed}

    def make_empty_columns(self, columns: Mapping[str, NDArray[Any]], schema: Schema) -> dict[str, NDArray[Any]]:
        """Columns of no rows in these forms, each of the type and trailing shape that rows have: those of pictures are
        known from a blank one."""
        empty = dict(columns)
        for field in schema.fields:
            values = columns.get(field.name)
            if values is None or field.type == "audio":
                continue
            pictures = field.item == "bytes" or (is_pixels(values) and not self.files_only)
            if pictures and (convert := picture_form(self.pictures)) is not None:
                empty[field.name] = convert(np.zeros((1, *(field.shape or _BLANK)), np.uint8))[:0]
        return empty

    def remarks(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, str]:
        """For the run card: in what form pictures and sounds are handed over, and what decodes them."""
        said: dict[str, str] = {}
        for name, _ in self._changes(columns):
            if is_encoded(columns[name]) and is_sounds(columns[name]):
                said |= {"sounds": f"{self.sounds} a second", "sound_decoder": sound_decoder()}
            else:
                said["pictures"] = f"{self.pictures} pixels" if isinstance(self.pictures, int) else str(self.pictures)
                said["decoder"] = ", ".join(getattr(self.pictures, "decides", None) or [decoder().version])
        return said

    def _changes(self, columns: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, Convert]]:
        for name, column in columns.items():
            convert: Convert | None = None
            if is_encoded(column):
                convert = sound_form(self.sounds) if is_sounds(column) else picture_form(self.pictures)
            elif is_pixels(column) and not self.files_only and len(column):
                convert = picture_form(self.pictures)
            if convert is not None:
                yield name, convert


AS_THEY_ARE = Forms()


def readable(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Which rows hold no picture or sound that cannot be decoded, (n,)."""
    found: NDArray[np.bool_] = np.ones(len(next(iter(columns.values()))), bool)
    for column in columns.values():
        if is_encoded(column):
            look = _hear if is_sounds(column) else opened
            for place in np.flatnonzero(found):
                try:
                    look(column, int(place))
                except BadData:
                    found[place] = False
    return found


def _hear(column: NDArray[Any], place: int) -> None:
    samples(column[place], 8000, "")


def of_row(error: BadFile, row_ids: NDArray[np.uint64]) -> BadData:
    """The error for a file of training rows, which are never left out: it names the row."""
    return BadData(f"row {int(row_ids[error.place]):016x}: its {error.what} cannot be decoded: {error.why}")


def rows_of(columns: Mapping[str, NDArray[Any]], rows: Any) -> dict[str, NDArray[Any]]:
    """Some rows of each column."""
    return {name: column[rows] for name, column in columns.items()}
