"""Building the C library of the kernel: compilers, flags, and file names.

Imports only the standard library, since the build of the package reads it before the package is
installed. The library carries a digest of its sources, and its file name the platform.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fno-fast-math", "-fno-math-errno")
"""No fused operations and nothing reordered, so that digits are the same on every machine."""
LIBRARIES = {"linux": ("-lm",)}
ZIG_FLAGS = ("-s", "-mcpu=baseline")
"""No paths of this machine, and no instructions that another machine may lack: without a target Zig
compiles for the processor that it runs on, and containers move between machines."""
NO_COMPILER = (
    "quiltwork needs to compile a small C program, and found no compiler (CC, cc, gcc, clang). "
    "Install one (Debian, Ubuntu: apt install gcc libc6-dev; macOS: xcode-select --install), or "
    "the package ziglang, which contains one and takes about 100 MB: pip install ziglang"
)


class BuildError(RuntimeError):
    """The kernel cannot be compiled: there is no compiler, or it fails."""


@dataclass(frozen=True)
class Target:
    """A platform for which wheels are cross-compiled.

    Attributes:
        triple: its name for Zig.
        platform: its name in the library's file name.
        tag: its name in the wheel's file name.
    """

    triple: str
    platform: str
    tag: str


TARGETS = (
    Target("x86_64-linux-gnu.2.17", "linux-x86_64", "manylinux2014_x86_64"),
    Target("aarch64-linux-gnu.2.17", "linux-arm64", "manylinux2014_aarch64"),
    Target("x86_64-linux-musl", "linux-musl-x86_64", "musllinux_1_2_x86_64"),
    Target("aarch64-linux-musl", "linux-musl-arm64", "musllinux_1_2_aarch64"),
    Target("x86_64-macos.11.0", "darwin-x86_64", "macosx_11_0_x86_64"),
    Target("aarch64-macos.11.0", "darwin-arm64", "macosx_11_0_arm64"),
    Target("x86_64-windows-gnu", "win32-x86_64", "win_amd64"),
    Target("aarch64-windows-gnu", "win32-arm64", "win_arm64"),
)


def sources(folder: Path = FOLDER) -> list[Path]:
    """The C files and headers, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h"))


def digest(folder: Path = FOLDER) -> str:
    """The digest of the sources and compiler flags, which identifies a kernel."""
    parts = [" ".join(FLAGS).encode()]
    for path in sources(folder):  # a checkout on Windows may have other line endings
        parts += [path.name.encode(), path.read_bytes().replace(b"\r\n", b"\n")]
    return sha256(b"\0".join(parts)).hexdigest()


def this_platform() -> str:
    """The platform of this interpreter: operating system, C library if it is musl, processor."""
    if sys.platform == "win32":
        machine = "arm64" if "arm64" in EXTENSION_SUFFIXES[0] else "x86_64"
    else:
        machine = os.uname().machine.replace("aarch64", "arm64")
    libc = "musl-" if "musl" in EXTENSION_SUFFIXES[0] else ""
    return f"{sys.platform}-{libc}{machine}"


def library_name(platform: str) -> str:
    """The file name of the library.

    Not `.so`: `pkgutil` and other tools would take it for a Python module, and it cannot be
    imported.
    """
    suffix = ".dll" if platform.startswith("win32") else ".native"
    return f"kernel-{platform}{suffix}"


def compilers() -> list[list[str]]:
    """The available compiler commands, the machine's own before Zig's."""
    if named := os.environ.get("CC"):
        return [shlex.split(named)]
    commands = [[path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]
    return commands + ([zig()] if find_spec("ziglang") else [])


def zig() -> list[str]:
    """The command of the compiler in the package `ziglang`."""
    return [sys.executable, "-m", "ziglang", "cc", *ZIG_FLAGS]


def build(folder: Path = FOLDER, target: Target | None = None, into: Path | None = None) -> Path:
    """Compile the library for this machine, or for a target, and return its path.

    The file is replaced atomically, so that processes may build at the same time.

    Raises:
        BuildError: if no compiler succeeds.
    """
    platform = this_platform() if target is None else target.platform
    commands = compilers() if target is None else [[*zig(), "-target", target.triple]]
    if not commands:
        raise BuildError(NO_COMPILER)
    path = (into or folder) / library_name(platform)
    refusals = []
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".kernel-") as scratch:
        built = Path(scratch) / path.name
        for command in commands:
            refusal = _compile(command, folder, built, platform)
            if refusal is None:
                # atomic: another process sees the old file or the new one
                os.replace(built, path)
                return path
            refusals.append(refusal)
    raise BuildError("The kernel of quiltwork does not compile:\n" + "\n".join(refusals))


def _compile(command: list[str], folder: Path, path: Path, platform: str) -> str | None:
    """Run one compiler; return its error message, or None on success."""
    flags = [*FLAGS, "-shared", "-fvisibility=hidden", f'-DKERNEL_DIGEST="{digest(folder)}"']
    if not platform.startswith("win32"):
        flags += ["-fPIC"]
    files = [str(file) for file in sources(folder) if file.suffix == ".c"]
    line = [*command, *flags, *files, "-o", str(path), *LIBRARIES.get(platform[:5], ())]
    try:
        process = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        return f"{command[0]}: {error}"
    if process.returncode == 0 and path.exists():
        return None
    return f"{shlex.join(command)}: {process.stderr.strip() or f'exit code {process.returncode}'}"


def main() -> None:
    """Compile the library for this machine unless it is up to date.

    With --compiler only check for a compiler; with --tags list the tags of all wheels.
    """
    if "--compiler" in sys.argv:
        sys.exit(not compilers())
    if "--tags" in sys.argv:
        print(*(target.tag for target in TARGETS))
        return
    path = FOLDER / library_name(this_platform())
    if not (path.exists() and digest().encode() in path.read_bytes()):
        build()
    print(path)


if __name__ == "__main__":
    main()
