"""Behaviour of a program: phases of work of one rank, with the communication and files that belong to them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from perf_assets.demo.hardware.work import Stream, Work

_ADDED = (
    *("double_flops", "single_flops", "integer_ops", "divides", "math_calls"),
    *("chained_flops", "branches", "atomic_ops", "atomic_targets"),
)
"""Amounts of work that the ranks of a node add up to."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Messages that one rank sends during a phase, summed over the run."""

    messages: float = 0.0
    message_bytes: float = 0.0
    """Payload of all messages together."""
    rounds: float = 0.0
    """Times at which messages are exchanged: a GPU back end copies once each way for all messages of a round."""
    reductions: float = 0.0
    """Small all-reduces: every rank waits for every other."""
    is_all_to_all: bool = False
    """Partners are anywhere; otherwise most are neighbours."""


@dataclass(frozen=True, kw_only=True)
class FileTraffic:
    """Bytes that one rank reads and writes during a phase."""

    read_bytes: float = 0.0
    written_bytes: float = 0.0
    opened: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One part of a program as one rank executes it, summed over all its time steps or iterations."""

    name: str
    work: Work
    """Work of one rank; the reuse distances of its streams are those of the rank's own data."""
    scratch: tuple[Stream, ...] = ()
    """Accesses to what each thread keeps for itself; reuse distances are those of one thread."""
    offloads: bool = False
    """Runs on the device where the machine has one and the program has a back end for it."""
    device_work: Work | None = None
    """Work of one rank, where the GPU back end orders its loops otherwise; None: as on the host."""
    to_device_bytes: float = 0.0
    from_device_bytes: float = 0.0
    """Copied by a GPU back end, beside what messages make necessary."""
    exchange: Exchange = Exchange()
    files: FileTraffic = FileTraffic()
    idle_share: float = 0.0
    """Time that a rank waits for its turn in a wavefront, against its own time in the phase."""

    def on_node(self, ranks: int, threads: int) -> Work:
        """The work of all ranks that share a node, each with this many threads; nothing in it is serial."""
        return replace(
            self._scaled(ranks, threads),
            streams=(*_grown(self.work.streams, ranks, ranks), *_grown(self.scratch, ranks, ranks * threads)),
        )

    def on_device(self) -> Work:
        """The work of one rank on its device, without copies."""
        if self.device_work is not None:
            return self.device_work
        return replace(self.work, streams=(*self.work.streams, *self.scratch))

    def _scaled(self, ranks: int, threads: int) -> Work:
        work = self.work
        added: dict[str, Any] = {name: getattr(work, name) * ranks for name in _ADDED}
        items = None if work.parallel_items is None else work.parallel_items * ranks
        regions = 0.0 if threads == 1 else work.parallel_regions
        return replace(work, **added, parallel_items=items, serial_share=0.0, parallel_regions=regions)


def _grown(streams: Iterable[Stream], volume: float, distance: float) -> tuple[Stream, ...]:
    return tuple(
        replace(
            stream,
            read_bytes=stream.read_bytes * volume,
            written_bytes=stream.written_bytes * volume,
            reuse_bytes=stream.reuse_bytes * distance,
        )
        for stream in streams
    )
