"""Write requirements.lock: what `make setup` installs, with the exact version and the hashes of every file of it.

`make lock` runs it after a change of constraints.txt or pyproject.toml, in the environment of `make setup`. Versions
are those of constraints.txt, packages those that `perf_assets[all]` needs, directly or not, on this Python; hashes are
of all files that the package index (PyPI, or the first argument) has of them, and of those in the folders of `pip
config get global.find-links`. To install from it:

    pip install --require-hashes -r requirements.lock && pip install --no-deps .
"""

import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

PROJECT = Path(__file__).resolve().parents[1]
LOCK = PROJECT / "requirements.lock"
INDEX = "https://pypi.org/simple"
_FILE = re.compile(r'href="[^"]*/([^"/#]+)#sha256=([0-9a-f]{64})"')
_HEAD = "# Made by 'make lock' from constraints.txt; do not edit. pip install --require-hashes -r requirements.lock\n"


def needed(extra: str = "all") -> dict[str, set[str]]:
    """Packages that an extra of perf_assets needs, directly or not, each with the extras of it that are asked for."""
    found: dict[str, set[str]] = {}
    waiting, seen = [("perf-assets", extra)], set()
    while waiting:
        name, of = waiting.pop()
        if (name, of) in seen:
            continue
        seen.add((name, of))
        for line in requires(name) or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": of}):
                other = canonicalize_name(requirement.name)
                found.setdefault(other, set()).update(requirement.extras)
                waiting += [(other, asked) for asked in ("", *requirement.extras)]
    return {name: extras for name, extras in sorted(found.items()) if name != "perf-assets"}


def requirement_line(name: str, extras: set[str], version: str) -> str:
    """`name[extra]==version`; pip knows a package with extras by these only."""
    return f"{name}[{','.join(sorted(extras))}]=={version}" if extras else f"{name}=={version}"


def pins() -> dict[str, str]:
    """Version by name, from constraints.txt."""
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    found = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonicalize_name(name): version.strip() for name, version in found}


def version_of(file: str) -> str:
    """Version in the name of a file, without what a local build adds; empty where it is neither wheel nor source."""
    try:
        parsed = parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except ValueError:
        return ""
    return parsed.public


def hashes(name: str, version: str, index: str) -> list[str]:
    """Hashes of all files of a version."""
    with urllib.request.urlopen(f"{index}/{name}/", timeout=120) as answer:
        listed = _FILE.findall(answer.read().decode())
    found = {digest for file, digest in listed if version_of(file.replace("%2B", "+")) == version}
    return sorted(found | {sha256(file.read_bytes()).hexdigest() for file in _local(name, version)})


def _local(name: str, version: str) -> list[Path]:
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.find-links"], capture_output=True, text=True, check=False
    )
    files = [file for folder in asked.stdout.split() for file in Path(folder).glob("*.whl")]
    return [
        file
        for file in files
        if canonicalize_name(file.name.split("-")[0]) == name and version_of(file.name) == version
    ]


def main() -> None:
    """Write the file."""
    index, pinned, packages = (sys.argv[1:] or [INDEX])[0], pins(), needed()
    lacking = [name for name in packages if name not in pinned]
    if lacking:
        raise SystemExit(f"lock: constraints.txt does not pin {', '.join(lacking)}")
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(packages, pool.map(lambda name: hashes(name, pinned[name], index), packages), strict=True))
    bare = [f"{name} {pinned[name]}" for name, of_name in found.items() if not of_name]
    if bare:
        raise SystemExit(f"lock: {index} has no file of {', '.join(bare)}")
    parts = [
        " \\\n".join(
            [requirement_line(name, extras, pinned[name]), *(f"    --hash=sha256:{digest}" for digest in found[name])]
        )
        for name, extras in packages.items()
    ]
    LOCK.write_text(_HEAD + "\n".join(parts) + "\n")
    print(f"{LOCK.name}: {len(packages)} packages, {sum(map(len, found.values()))} files")  # noqa: T201


if __name__ == "__main__":
    main()
