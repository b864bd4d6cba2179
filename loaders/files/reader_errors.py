"""Convert exceptions of libraries for unreadable data to one-line errors, around each call of a reader."""

from __future__ import annotations

import csv
import lzma
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from ...core.errors import BadData, FarshiftError, get_first_line

_RAISED = (
    ArithmeticError,
    EOFError,
    RecursionError,
    UnicodeError,
    csv.Error,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
_OF_ANOTHER_FORM = (AttributeError, LookupError, SyntaxError, TypeError, ValueError)
"""What code raises that takes apart a record or a document (ElementTree's error is a `SyntaxError`) of another form."""
_OF_LIBRARIES = (("pyarrow", "ArrowException"), ("PIL.Image", "DecompressionBombError"))


@contextmanager
def convert_reader_errors(where: str, form: str = "") -> Iterator[None]:
    """Convert a library's exception about data to `BadData` that begins with `where`, the source or file being read;
    with `form`, the published form that the files should have, also those of code that reads this form. Other
    exceptions, including `FarshiftError`, are not changed."""
    try:
        yield
    except FarshiftError:
        raise
    except Exception as error:
        # An OSError without a number is a library's complaint about the content, such as an image or a Parquet page.
        of_content = isinstance(error, OSError) and error.errno is None
        if not of_content and not isinstance(error, (*_RAISED, *_list_library_errors())):
            if form and isinstance(error, _OF_ANOTHER_FORM):
                message = f"{get_first_line(error)} ({type(error).__name__})"
                raise BadData(f"{where}: its files are not in the form of {form}: {message}") from error
            raise
        raise BadData(f"{where} cannot be read: {_describe_error(error)}") from error


def _list_library_errors() -> tuple[type[Exception], ...]:
    """The exceptions of imported libraries: others cannot have raised one."""
    loaded = [(sys.modules.get(module), name) for module, name in _OF_LIBRARIES]
    return tuple(getattr(module, name) for module, name in loaded if hasattr(module, name))


def _describe_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return f"it needs more memory than available ({get_first_line(error)})"
    return f"{get_first_line(error)} ({type(error).__name__})"
