"""The software that a run was made with: compiler, flags, MPI, GPU stack, code version, as one readable line.

Parts are separated by `; `. Two runs with the same line were made with the same software as far as their files say; a
line whose parts are all in another one says less, and contradicts nothing.
"""

import hashlib
import re
from collections.abc import Mapping

from perf_assets.core.errors import BadInputError
from perf_assets.core.text import printable

UNKNOWN = "unknown"
"""Placeholder where nothing is known of the software."""
ENVIRONMENT_TAG = "environment"
"""Tag of a manifest that holds the whole line."""
MAX_ENVIRONMENT = 300
_SEPARATOR = "; "
DIGEST_CHARACTERS = 8

_COMPILER, _COMPILER_VERSION = ("compiler", "compilername", "cc", "cxx"), ("compilerversion",)
_FLAGS = ("rajaperfcompileroptions", "cmakecxxflags", "compilerflags", "cflags", "cxxflags", "fflags")
_NAMED = {
    "mpi": (("mpi", "mpilibrary", "mpilibraryvendor"), ("mpilibraryversion",)),
    "cuda": ((), ("cudacompilerversion", "cudaversion", "cuda", "cudaruntimeversion")),
    "rocm": ((), ("rocmversion", "rocm", "hipversion", "hip")),
    "driver": ((), ("driver", "driverversion", "cudadriverversion")),
    "RAJAPerf": ((), ("perfsuiteversion",)),
    "code": ((), ("codeversion", "version", "commit", "spackhash")),
}
"""Name of a part, the metadata that name it, and those with its version."""
_MODULE = re.compile(r"[\w.+-]+/v?\d[\w.+-]*")
_IDLE_FLAGS = re.compile(r"-W(?!l,|p,|a,)\S*|-g\d?|-fdiagnostics\S*|-pipe")
"""Flags that change no instruction."""


def environment_of(metadata: Mapping[str, str]) -> str | None:
    """The line for labels of files or tags, in any spelling; None where they name no software."""
    tagged = _folded(metadata.get(ENVIRONMENT_TAG, ""))
    if tagged:
        return None if tagged == UNKNOWN else _shortened(printable(tagged))
    known = {re.sub(r"[^a-z0-9]", "", name.lower()): text.strip() for name, text in metadata.items()}
    parts = [_named(known, _COMPILER, _COMPILER_VERSION), _flags(known)]
    for name, (names, versions) in _NAMED.items():
        part = _named(known, names, versions)
        parts.append(f"{name} {part}" if part and not names else part)
    parts.append(_modules(known))
    line = _SEPARATOR.join(part.replace(";", ",") for part in parts if part)
    return _shortened(printable(line)) or None


def check_environment(text: str) -> str:
    """Return a person's name of an environment with the usual separators; refuse characters that no table can show."""
    line = _folded(text)
    if not line.isprintable() or not 1 <= len(line) <= MAX_ENVIRONMENT:
        raise BadInputError(f"environment {line[:40]!a}: must be 1 to {MAX_ENVIRONMENT} printable characters")
    return line


def parts_of(environment: str) -> list[str]:
    """Parts of a line; none of the unknown one."""
    return [] if environment == UNKNOWN else [part.strip() for part in environment.split(";") if part.strip()]


def is_meant(text: str, environment: str) -> bool:
    """Whether parts of a line, a digest or `unknown`, as a person gives them, stand for an environment."""
    wanted = set(parts_of(text))
    by_line = wanted <= set(parts_of(environment)) if wanted else environment == UNKNOWN
    return by_line or text == environment_digest(environment)


def environment_digest(environment: str) -> str:
    """Short name of an environment."""
    return hashlib.sha256(environment.encode()).hexdigest()[:DIGEST_CHARACTERS]


def _folded(text: str) -> str:
    """One line of parts, blanks folded, none of them empty."""
    parts = (" ".join(part.split()) for part in text.split(";"))
    return _SEPARATOR.join(part for part in parts if part)


def _named(known: Mapping[str, str], names: tuple[str, ...], versions: tuple[str, ...]) -> str:
    name = next((_without_path(known[key]) for key in names if known.get(key)), "")
    version = next((_without_path(known[key]) for key in versions if known.get(key)), "")
    return name if not version or version in name else f"{name} {version}".strip()


def _without_path(text: str) -> str:
    """Names without folders, which are of one host and one user; a module's version (`gcc/12.1`) is no file in one."""
    words = (word for word in re.split(r"[\s:{},]+", text) if word)
    return " ".join(word if _MODULE.fullmatch(word) else word.rpartition("/")[2] for word in words)


def _modules(known: Mapping[str, str]) -> str:
    """Modules with their versions; of a module file that is named by its path, the last two parts."""
    words = [word for word in re.split(r"[\s:,]+", known.get("loadedmodules", "")) if word]
    names = ["/".join(word.split("/")[-2:]) if word.startswith("/") else word for word in words]
    return f"modules {' '.join(names)}" if names else ""


def _flags(known: Mapping[str, str]) -> str:
    """Flags that matter, each once. Of two levels of optimisation both stay: files do not say which came last."""
    words = re.split(r"[\s;,{}\[\]]+", " ".join(known.get(key, "") for key in _FLAGS))
    kept = [word for word in words if word and "/" not in word and not _IDLE_FLAGS.fullmatch(word)]
    return " ".join(dict.fromkeys(kept))


def _shortened(line: str) -> str:
    """A line that is too long keeps its identity by a digest at its end."""
    if len(line) <= MAX_ENVIRONMENT:
        return line
    return f"{line[: MAX_ENVIRONMENT - DIGEST_CHARACTERS - 2]}… {environment_digest(line)}"
