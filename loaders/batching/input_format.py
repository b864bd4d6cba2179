"""The format of images and audio in batches: encoded files, decoded, or transformed for a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, FarshiftError
from ...splits.schema import Schema
from ..decoders import load_decoder
from .audio import describe_audio_decoder, read_samples
from .encoded import BadAudio, BadFile, is_audio, is_encoded, is_pixels
from .images import Given, decode_images, map_images, open_image
from .transform import Transform


@runtime_checkable
class ImageTransform(Protocol):
    """An object that converts images to arrays: `Transform`, or a model's own processor."""

    def pixels(self, given: Given) -> NDArray[Any]:
        """Convert images, encoded or as arrays, to an array (n, ..)."""
        ...


ImageSpec: TypeAlias = "str | int | ImageTransform"
"""`bytes`, the encoded files; `PIL`, Pillow images in RGB; a side in pixels, uint8 (n, side, side, 3), resized without
keeping proportions; the text of a `Transform`, float32 (n, 3, height, width); or an object with `pixels`."""
AudioSpec: TypeAlias = "str | int"
"""`bytes`, the encoded files; or a sampling rate in Hz: float32 samples from -1 to 1, one channel
(`audio.read_samples`)."""

Convert: TypeAlias = "Callable[[Given], NDArray[Any]]"


_BLANK = (32, 32, 3)
"""The shape of a blank image, from which the type of an empty column is found."""


def parse_image_format(spec: ImageSpec) -> Convert | None:
    """Return the function that converts images to the format `spec`; None for encoded files. Raises `FarshiftError` for
    an invalid format."""
    if isinstance(spec, str):
        if spec == "bytes":
            return None
        return _open_images if spec == "PIL" else Transform(spec).pixels
    if isinstance(spec, ImageTransform):
        return spec.pixels
    if not isinstance(spec, int) or isinstance(spec, bool) or not 0 < spec <= 4096:
        raise FarshiftError(
            f"images = {spec!r}: use 'bytes', 'PIL', a side in pixels (224), or a transform ('imagenet')"
        )
    return lambda given: _resize_images(given, spec)


def parse_audio_format(spec: AudioSpec) -> Convert | None:
    """Return the function that converts audio files to the format `spec`; None for encoded files. Raises
    `FarshiftError` for an invalid format."""
    if spec == "bytes":
        return None
    if not isinstance(spec, int) or isinstance(spec, bool) or not 0 < spec <= 768_000:
        raise FarshiftError(f"audio = {spec!r}: use 'bytes', or a sampling rate in Hz (16000)")
    return lambda given: _decode_audio(given, spec)


def _get_request(model: Any, name: str) -> Any:
    """A model's attribute `name`; "bytes" if there is none, or if it is a submodule or method of that name."""
    request = getattr(model, name, "bytes")
    return "bytes" if callable(request) and not isinstance(request, ImageTransform) else request


def _open_images(given: Given) -> NDArray[Any]:
    images = np.empty(len(given), object)
    for index in range(len(given)):
        images[index] = open_image(given, index)
    return images


def _resize_images(given: Given, side: int) -> NDArray[np.uint8]:
    if isinstance(given, np.ndarray) and is_encoded(given):
        return decode_images(given, side)
    import PIL.Image

    by = PIL.Image.Resampling.BILINEAR
    return map_images(given, lambda image: np.asarray(image.resize((side, side), by)))


def _decode_audio(given: Given, rate: int) -> NDArray[Any]:
    signals = np.empty(len(given), object)
    for index, content in enumerate(given):
        try:
            signals[index] = read_samples(content, rate, "")
        except BadData as error:
            raise BadAudio.at(index, len(given), str(error).removeprefix(" cannot be read as WAV: ")) from error
    return signals


@dataclass(frozen=True)
class InputFormat:
    """The input format that a model or a training loop requests. By default columns are not converted: encoded files
    are `bytes`, and image arrays (uint8 of two or three axes) are arrays. files_only: image arrays are never converted,
    only encoded images."""

    images: ImageSpec = "bytes"
    audio: AudioSpec = "bytes"
    files_only: bool = False

    @classmethod
    def of(cls, model: Any) -> InputFormat:
        """Return the format that a model requests: an adapter by `forms`, a user's own model by `images` and
        `audio`."""
        own_format = getattr(model, "forms", None)
        if isinstance(own_format, InputFormat):
            return own_format
        return cls(_get_request(model, "images"), _get_request(model, "audio"))

    def checked(self) -> InputFormat:
        """Return self. Raises `FarshiftError` if a format is invalid."""
        parse_image_format(self.images), parse_audio_format(self.audio)
        return self

    def given(
        self, columns: Mapping[str, NDArray[Any]], row_ids: NDArray[np.uint64] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return the columns in this format. Raises `BadFile` for a file that cannot be decoded, or with `row_ids` a
        `BadData` that names its row; `FarshiftError` for an invalid format."""
        try:
            return {**columns, **{name: convert(columns[name]) for name, convert in self._changes(columns)}}
        except BadFile as error:
            if row_ids is None:
                raise
            row = f"{int(row_ids[error.position]):016x}"
            raise BadData(f"row {row}: its {error.what} cannot be decoded: {error.why}") from error

    def make_empty_columns(self, columns: Mapping[str, NDArray[Any]], schema: Schema) -> dict[str, NDArray[Any]]:
        """Return columns without rows in this format, with the type and trailing shape of columns with rows. For images
        these are found from a blank image."""
        empty = dict(columns)
        for field in schema.fields:
            values = columns.get(field.name)
            if values is None or field.type == "audio":
                continue
            is_image = field.item == "bytes" or (is_pixels(values) and not self.files_only)
            if is_image and (convert := parse_image_format(self.images)) is not None:
                empty[field.name] = convert(np.zeros((1, *(field.shape or _BLANK)), np.uint8))[:0]
        return empty

    def remarks(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, str]:
        """Return the format of images and audio, and their decoders, for the run card."""
        record: dict[str, str] = {}
        for name, _ in self._changes(columns):
            if is_encoded(columns[name]) and is_audio(columns[name]):
                record |= {"sounds": f"{self.audio} a second", "sound_decoder": describe_audio_decoder()}
            else:
                record["pictures"] = f"{self.images} pixels" if isinstance(self.images, int) else str(self.images)
                record["decoder"] = ", ".join(getattr(self.images, "decides", None) or [load_decoder().version])
        return record

    def _changes(self, columns: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, Convert]]:
        for name, column in columns.items():
            convert: Convert | None = None
            if is_encoded(column):
                convert = parse_audio_format(self.audio) if is_audio(column) else parse_image_format(self.images)
            elif is_pixels(column) and not self.files_only and len(column):
                convert = parse_image_format(self.images)
            if convert is not None:
                yield name, convert


AS_THEY_ARE = InputFormat()


def find_readable_rows(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return the rows whose images and audio can all be decoded, shape (n,)."""
    is_readable: NDArray[np.bool_] = np.ones(len(next(iter(columns.values()))), bool)
    for column in columns.values():
        if is_encoded(column):
            decode = _check_audio if is_audio(column) else open_image
            for index in np.flatnonzero(is_readable):
                try:
                    decode(column, int(index))
                except BadData:
                    is_readable[index] = False
    return is_readable


def _check_audio(column: NDArray[Any], index: int) -> None:
    read_samples(column[index], 8000, "")
