"""Packages that are functions too: `farshift.splits` is a package, and `farshift.splits()` lists what it holds.

The function may be in a higher layer than the package (a listing of splits knows their sources), so it is named here
by its module, and loaded when it is called.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *values: Any, **named: Any) -> Any:
        module_path, name = self.__dict__["_LISTS"]
        return getattr(import_module(f"{self.__name__.partition('.')[0]}.{module_path}"), name)(*values, **named)


def make_callable(package: str, module_path: str, name: str) -> None:
    """Calling the package calls the function `name` of the module `module_path`, relative to the whole package."""
    module = sys.modules[package]
    module.__dict__["_LISTS"] = module_path, name
    module.__class__ = _Callable
