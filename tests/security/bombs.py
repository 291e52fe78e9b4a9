"""Reads one bomb and prints what came of it: run as a process of its own, so that its memory can be measured."""

import gzip
import json
import os
import resource
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from perf_assets.core.errors import BadInputError

Build = Callable[[Path], None]
_LIMIT = 6 * 2**30
"""Of addresses: should a bomb go off, this process dies and not the machine."""
_XML = '<?xml version="1.0"?>{dtd}<HPCToolkitExperiment version="2.0"><Header n="{text}"/>'


def _yaml(lines: str) -> Build:
    return lambda file: file.write_text(lines) and None


def _merges(form: str) -> str:
    steps = (form.format(number, ",".join([f"*a{number - 1}"] * 10)) for number in range(1, 10))
    return "a0: &a0 {k: v}\n" + "".join(steps)


def _laughs(file: Path) -> None:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    dtd = f'<!DOCTYPE HPCToolkitExperiment [<!ENTITY l0 "lol">{entities}]>'
    file.write_text(_XML.format(dtd=dtd, text="&l9;"))


def _external(file: Path) -> None:
    dtd = '<!DOCTYPE HPCToolkitExperiment [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    file.write_text(_XML.format(dtd=dtd, text="&x;"))


def _parameter_entity(file: Path) -> None:
    dtd = '<!DOCTYPE HPCToolkitExperiment [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]>'
    file.write_text(_XML.format(dtd=dtd, text=""))


def _deep_xml(file: Path) -> None:
    file.write_text(_XML.format(dtd="", text="") + "<a>" * 5_000_000)


def _endless_comment(file: Path) -> None:
    file.write_text(_XML.format(dtd="", text="") + "<!--" + " " * 2**26)


def _papi(value: str) -> Build:
    text = '{"papi_version":"7","threads":{"0":{"regions":{"0":{"x":' + value + "}}}}}"
    return lambda file: file.write_text(text) and None


def _sparse(head: str) -> Build:
    def build(file: Path) -> None:
        file.write_text(head)
        os.truncate(file, 2**32 - 1)

    return build


def _many_columns(file: Path) -> None:
    file.write_text(",".join(f"c{number}" for number in range(1_300_000)) + "\n1,2\n")


def _parquet(file: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    zeros = np.zeros(5_000_000)
    pq.write_table(pa.table({"x": zeros, "y": zeros}), file, compression="zstd")


def _parquet_footer(length: int) -> Build:
    def build(file: Path) -> None:
        _parquet_small(file)
        data = file.read_bytes()
        file.write_bytes(data[:-8] + struct.pack("<I", length) + b"PAR1")

    return build


def _parquet_small(file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]}), file)


def _parquet_rows(file: Path) -> None:
    """The footer says that there are far more rows than values."""
    _parquet_small(file)
    data = file.read_bytes()
    start = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    # Field 3 of the footer (an i64, here 2 as zigzag 4), followed by the list of row groups.
    at = data.index(b"\x16\x04\x19", start)
    forged = data[:at] + b"\x16\xfe\xff\xff\xff\xff\x07\x19" + data[at + 3 :]
    footer = len(forged) - 8 - start
    file.write_bytes(forged[:-8] + struct.pack("<I", footer) + b"PAR1")


def _cali(file: Path) -> None:
    nodes = (f"__rec=node,id={number},attr=13,data=a\n" for number in range(14, 200_000))
    head = "__rec=node,id=12,attr=10,data=276,parent=3\n__rec=node,id=13,attr=8,data=region,parent=12\n"
    file.write_text(head + "".join(nodes) + "__rec=globals,ref=20\n")


def _trace(line: bytes) -> Build:
    def build(file: Path) -> None:
        with gzip.open(file, "wb", 9) as stream:
            for _ in range(64):
                stream.write(line * (2**22 // len(line)))

    return build


READ: dict[str, tuple[Build, str]] = {
    "xml-laughs": (_laughs, "declares the XML entity"),
    "xml-external": (_external, "declares the XML entity"),
    "xml-parameter": (_parameter_entity, "declares the XML entity"),
    "xml-deep": (_deep_xml, "nests elements"),
    "xml-comment": (_endless_comment, "longer than any"),
    "json-deep": (_papi("[" * 100_000 + "]" * 100_000), "nested too deeply"),
    "json-open": (_papi('{"a":' * 100_000), "nested too deeply"),
    "json-digits": (_papi("9" * 1_000_000), "not valid JSON"),
    "json-exponent": (_papi("1e999999999"), "instead of a finite number"),
    "json-empty-lists": (_papi("[" + "[]," * 1_000_000 + "1]"), "instead of a finite number"),
    "perf-deep": (lambda f: f.write_text('{"counter-value": ' + "[" * 100_000) and None, "nested too deeply"),
    "csv-sparse": (_sparse("a,b\n1,2\n"), "has a line of more than"),
    "csv-sparse-blanks": (_sparse("a b\n1 2\n"), "has a line of more than"),
    "csv-quote": (lambda f: f.write_text('a,b\n1,"' + "x\n" * 10_000_000) and None, "no proper table"),
    "csv-header": (_many_columns, "more than 10000 columns"),
    "parquet-zeros": (_parquet, "unpacks to"),
    "parquet-footer-huge": (_parquet_footer(2**32 - 1), "no readable Parquet"),
    "parquet-footer-negative": (_parquet_footer(2**31), "no readable Parquet"),
    "parquet-rows": (_parquet_rows, "unpacks to"),
    "cali": (_cali, "no time and no counter"),
}
SHEETS: dict[str, tuple[Build, str]] = {
    "yaml-merges": (_yaml(_merges("a{0}: &a{0} {{<<: [{1}]}}\n")), "aliases"),
    "yaml-aliases": (_yaml(_merges("a{0}: &a{0} [{1}]\n")), "aliases"),
    "yaml-deep": (_yaml("[" * 100_000), "deep"),
    "yaml-deep-maps": (_yaml("{a: " * 100_000), "deep"),
    "yaml-object": (_yaml("!!python/object/apply:os.system ['touch evil']"), "could not determine a constructor"),
    "yaml-name": (_yaml("machine: !!python/name:os.system"), "could not determine a constructor"),
    "yaml-digits": (_yaml("machine: " + "9" * 5000), "is not YAML"),
    "yaml-date": (_yaml("machine: 2001-99-99"), "is not YAML"),
}
MANIFESTS: dict[str, tuple[Build, str]] = {
    "manifest-deep": (_yaml("[" * 100_000), "recursion limit"),
    "manifest-deep-tags": (_yaml('{"tags":' + '{"a":' * 100_000), "recursion limit"),
    "manifest-digits": (_yaml('{"version":' + "9" * 1_000_000 + "}"), "number out of range"),
    "manifest-long-key": (_yaml('{"tags": {"' + "k" * 10**7 + '": 1}}'), "is missing"),
}
TRACES: dict[str, tuple[Build, str]] = {
    "trace-lines": (_trace(b"1 2\n"), "unpacks to more"),
    "trace-one-line": (_trace(b"1 "), "line that is too long"),
}
BOMBS = READ | SHEETS | MANIFESTS | TRACES


def _reading(name: str) -> Callable[[Path], object]:
    if name in SHEETS:
        from perf_assets.core.machines import parse_machine_spec

        return lambda file: parse_machine_spec(file.read_text())
    if name in MANIFESTS:
        from perf_assets.core.manifest import parse_manifest

        return lambda file: parse_manifest(file.read_bytes())
    if name in TRACES:
        from perf_assets.scheduling.traces.swf import read_swf

        return read_swf
    from perf_assets.readers.read import read

    return read


def _explode(name: str, file: Path) -> dict[str, object]:
    reading = _reading(name)
    Path("/proc/self/clear_refs").write_text("5")
    started, resident = time.process_time(), _peak_bytes()
    try:
        reading(file)
        said = "it was read"
    except BadInputError as error:
        said = str(error)
    return {
        "name": name,
        "said": said,
        "seconds": time.process_time() - started,
        "megabytes": (_peak_bytes() - resident) / 2**20,
    }


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_LIMIT, _LIMIT))
    folder = Path(sys.argv[1])
    for bomb, (build, _) in BOMBS.items():
        path = folder / "bomb"
        build(path)
        sys.stdout.write(json.dumps(_explode(bomb, path)) + "\n")
        sys.stdout.flush()
        path.unlink()
