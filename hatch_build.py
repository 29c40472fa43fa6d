"""The build of the wheel: compiles the kernel, and names the wheel after its platform.

For this machine by its compiler, or by that of the package `ziglang`; for another by Zig, when
QUILTWORK_TARGET names one of the tags in `influence/kernel/building.py`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

KERNEL = Path("src", "quiltwork", "influence", "kernel")
ZIG = "ziglang==0.17.0"  # as in requirements/zig.txt; about 100 MB


class KernelHook(BuildHookInterface[Any]):
    """Adds the compiled library to a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Zig, where this machine has no compiler of its own."""
        return [] if self._building().compilers() else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile: in place for this machine, so that a checkout can be imported as it is."""
        building = self._building()
        tag, self._room = os.environ.get("QUILTWORK_TARGET"), tempfile.mkdtemp()
        try:
            if tag:
                target = next((one for one in building.TARGETS if one.tag == tag), None)
                if target is None:
                    known = ", ".join(one.tag for one in building.TARGETS)
                    raise building.BuildError(f"No such target: {tag!r}. There are {known}.")
                path = building.build(target=target, into=Path(self._room))
            else:
                path, tag = building.build(), own_tag()
        except building.BuildError as error:
            shutil.rmtree(self._room)
            sys.exit(str(error))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"
        if version != "editable":
            place = Path(*KERNEL.parts[1:], path.name)
            build_data["force_include"][str(path)] = place.as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._room, ignore_errors=True)

    def _building(self) -> ModuleType:
        """`building.py` of the kernel, without the package around it."""
        path = Path(self.root) / KERNEL / "building.py"
        spec = importlib.util.spec_from_file_location("quiltwork_kernel_building", path)
        assert spec is not None and spec.loader is not None  # noqa: S101, PT018
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module


def own_tag() -> str:
    """The tag of wheels that need not run elsewhere."""
    if sys.platform == "linux":
        return f"linux_{os.uname().machine}"
    return next(iter(platform_tags()))
