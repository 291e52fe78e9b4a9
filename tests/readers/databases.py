"""Small HPCToolkit databases made from scratch, for machines that have no real ones and for fuzzing."""

import struct
from collections.abc import Sequence
from pathlib import Path

ID_KINDS = ("SUMMARY", "NODE", "RANK", "THREAD", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM", "CORE")
SCOPES = ("point", "execution")
XML = """<?xml version="1.0"?>
<!DOCTYPE HPCToolkitExperiment [
<!ELEMENT HPCToolkitExperiment (Header, (SecCallPathProfile|SecFlatProfile)*)>
<!ATTLIST HPCToolkitExperiment version CDATA #REQUIRED>
]>
<HPCToolkitExperiment version="2.1">
<Header n="prog"><Info/></Header>
<SecCallPathProfile i="0" n="prog"><SecHeader>
<MetricTable>{metrics}</MetricTable>
<MetricDBTable>{db_metrics}</MetricDBTable>
<LoadModuleTable></LoadModuleTable></SecHeader>
<SecCallPathProfileData>{values}<PF i="2" n="1"><M n="0" v="9"/></PF></SecCallPathProfileData>
</SecCallPathProfile>
</HPCToolkitExperiment>
"""

Values = dict[tuple[int, int], Sequence[float]]
"""Rank and thread -> inclusive total of each metric."""


def write_metric_dbs(folder: Path, metrics: Sequence[str], values: Values) -> Path:
    """Write `experiment.xml` and one metric-db per rank and thread, of two nodes each."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 2 * len(metrics)
    entries = ""
    for index, name in enumerate(metrics):
        for column, (kind, letter) in enumerate((("inclusive", "I"), ("exclusive", "E"))):
            entries += (
                f'<MetricDB i="{2 * index + column}" n="{name} ({letter})" t="{kind}" db-glob="*.metric-db" '
                f'db-id="{2 * index + column}" db-num-metrics="{count}" db-header-sz="24"/>'
            )
    (folder / "experiment.xml").write_text(XML.format(metrics="", db_metrics=entries, values=""))
    for (rank, thread), totals in values.items():
        row = [value for total in totals for value in (total, 0.0)]
        data = b"HPCPROF-metricdb__00.10b" + struct.pack(">ii", 2, count) + struct.pack(f">{2 * count}d", *row, *row)
        (folder / f"1.prog-{rank:06d}-{thread:03d}-a8c0{rank % 2:04d}-{rank + 1}-0.metric-db").write_bytes(data)
    return folder


class _File:
    """Bytes of a v4 file in the making."""

    def __init__(self, kind: bytes, sections: int) -> None:
        self.data = bytearray(b"HPCTOOLKIT" + kind + bytes((4, 0)) + bytes(16 * sections))

    def add(self, data: bytes) -> int:
        self.data += bytes(-len(self.data) % 8)
        self.data += data
        return len(self.data) - len(data)

    def section(self, index: int, data: bytes) -> None:
        struct.pack_into("<QQ", self.data, 16 + 16 * index, len(data), self.add(data))


def meta_db(metrics: Sequence[str]) -> bytes:
    """A `meta.db` with two scopes per metric; metric m has ids 2m (point) and 2m+1 (execution)."""
    file = _File(b"meta", 8)
    file.section(0, struct.pack("<QQ", file.add(b"prog\0"), file.add(b"nothing\0")))
    kinds = [file.add(kind.encode() + b"\0") for kind in ID_KINDS]
    file.section(1, struct.pack("<QB7x", file.add(struct.pack(f"<{len(kinds)}Q", *kinds)), len(kinds)))
    scopes = [
        file.add(struct.pack("<QBB6x", file.add(name.encode() + b"\0"), index, index))
        for index, name in enumerate(SCOPES)
    ]
    structures = b""
    for index, name in enumerate(metrics):
        instances = b"".join(struct.pack("<QH6x", scope, 2 * index + number) for number, scope in enumerate(scopes))
        name_at = file.add(name.encode() + b"\0")
        structures += struct.pack("<QQQHH4x", name_at, file.add(instances), 0, len(scopes), 0)
    metrics_at = file.add(structures)
    header = struct.pack("<QIBBBxQHB5x", metrics_at, len(metrics), 32, 16, 24, scopes[0], len(scopes), 16)
    file.section(2, header)
    return bytes(file.data) + b"_meta.db"


def profile_db(values: Values, streams: Sequence[Sequence[float]] = ()) -> bytes:
    """A `profile.db` with a summary, the threads in reverse order, and GPU streams of rank 0."""
    file = _File(b"prof", 2)
    threads = [
        ((("NODE", 7 + rank % 2), ("RANK", rank), ("THREAD", thread)), v) for (rank, thread), v in values.items()
    ]
    threads += [((("NODE", 7), ("RANK", 0), ("GPUSTREAM", number)), v) for number, v in enumerate(streams)]
    infos = struct.pack("<QQI4xQQI4x", 0, 0, 0, 0, 0, 1)
    for ids, totals in reversed(threads):
        cells = [(2 * metric + 1, value) for metric, value in enumerate(totals) if value]
        cells_at = file.add(b"".join(struct.pack("<Hd", *cell) for cell in cells * 2))
        contexts = [(0, 0), (5, len(cells))] if cells else []
        contexts_at = file.add(b"".join(struct.pack("<IQ", *context) for context in contexts))
        id_tuple = struct.pack("<H6x", len(ids))
        for kind, number in ids:
            id_tuple += struct.pack("<BxHIQ", ID_KINDS.index(kind), kind == "NODE", number & 0xFF, number + 2**40)
        infos += struct.pack("<QQI4xQQI4x", 2 * len(cells), cells_at, len(contexts), contexts_at, file.add(id_tuple), 0)
    file.section(0, struct.pack("<QIB3x", file.add(infos), len(threads) + 1, 48))
    return bytes(file.data) + b"_prof.db"


def write_v4(folder: Path, metrics: Sequence[str], values: Values, streams: Sequence[Sequence[float]] = ()) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.db").write_bytes(meta_db(metrics))
    (folder / "profile.db").write_bytes(profile_db(values, streams))
    return folder
