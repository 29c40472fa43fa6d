"""Peers that need a little help to be imported."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType


def diffprivlib_mechanisms() -> ModuleType:
    """diffprivlib's mechanisms without its models, which need an older scikit-learn.

    The package is entered in sys.modules without running its __init__, which imports the models.
    """
    specification = importlib.util.find_spec("diffprivlib")
    assert specification is not None
    if "diffprivlib" not in sys.modules:
        sys.modules["diffprivlib"] = importlib.util.module_from_spec(specification)
    return importlib.import_module("diffprivlib.mechanisms")
