"""The lake's tables, opened in the one way that Dagster, commands, the service and the Python API share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perf_assets.core.catalogue import Catalogue, Resolved, load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import digest_of
from perf_assets.core.measurements import RELATIVE_TIME
from perf_assets.core.tables.landing import BUNDLES, RUNS
from perf_assets.core.tables.runs import CONFIGURATION, COUNTERS_WIDE
from perf_assets.features.counters.derivations import deriving, unmapped
from perf_assets.storage.lake import Lake
from perf_assets.storage.named_environments import named_environments
from perf_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.fleet.samples import FleetTables
    from perf_assets.features.vectors import VectorSamples

_WIDE_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = $name ORDER BY table_name"


def open_warehouse(lake: Lake, wait_seconds: float = 60.0) -> Warehouse:
    """Return the lake's warehouse with what is derived from its raw tables.

    The file of a host that has a warehouse of its own follows the record when it is first read. `wait_seconds` is how
    long to wait for a process that writes.
    """
    return Warehouse(lake, deriving(lake.site_catalogues(), named_environments(lake)), wait_seconds)


@dataclass(frozen=True)
class Fleet:
    """Machines of a lake: content of its tables about all of them, or about one."""

    lake: Lake

    @property
    def warehouse(self) -> Warehouse:
        """Tables of the lake."""
        return open_warehouse(self.lake)

    @property
    def catalogue(self) -> Catalogue:
        """Meanings of counters: those of this package, and those of the site."""
        return load_catalogue(self.lake.site_catalogues())

    def tables(self) -> "FleetTables":
        """Application runs, kernel runs and data sheets of all machines.

        Kernel times are per element of a node where the machines ran RAJAPerf at sizes of their own.
        """
        from perf_assets.features.fleet.per_element import sizes_in_words, sizes_match
        from perf_assets.features.fleet.samples import FleetTables

        by_size, specs = self.benchmark()
        if by_size.empty or sizes_match(by_size):
            return FleetTables(self.runs(), by_size, specs)
        return FleetTables(self.runs(), self.kernels_per_element(), specs, sizes_in_words(self._node_kernels()))

    def runs(self, machine: str | None = None) -> "pd.DataFrame":
        """Application runs of all machines, or of one."""
        from perf_assets.features.fleet.samples import RUNS_QUERY

        return self._rows(RUNS_QUERY, machine)

    def benchmark(self, machine: str | None = None) -> "tuple[pd.DataFrame, pd.DataFrame]":
        """Kernel runs and data sheets of all machines, or of one."""
        from perf_assets.features.fleet.samples import KERNELS_QUERY, SPECS_QUERY

        return self._rows(KERNELS_QUERY, machine), self._rows(SPECS_QUERY, machine)

    def kernels_per_element(self, machine: str | None = None) -> "pd.DataFrame":
        """Kernel times per element of a node, of all machines or of one."""
        from perf_assets.features.fleet.per_element import kernels_per_element

        return kernels_per_element(self._node_kernels(), machine)

    def _node_kernels(self) -> "pd.DataFrame":
        from perf_assets.features.fleet.per_element import NODE_KERNELS_QUERY

        return self.warehouse.frame(NODE_KERNELS_QUERY)

    def vector_samples(self) -> "VectorSamples":
        """Runs of all machines as samples of relative-performance vectors."""
        from perf_assets.features.fleet.vectors import VECTOR_QUERY, fleet_vectors

        return fleet_vectors(self.warehouse.frame(VECTOR_QUERY), self.tables())

    def machines_with_counters(self) -> list[str]:
        """Machines whose configurations are stored with counters under their own names."""
        return [str(name) for name in self.warehouse.frame(_WIDE_TABLES, {"name": COUNTERS_WIDE})["table_name"]]

    def runs_with_counters(self, machine: str) -> "pd.DataFrame":
        """Runs of a machine with its counters under their own names, indexed by configuration."""
        from perf_assets.features.fleet.samples import configuration_name

        if machine not in self.machines_with_counters():
            raise BadInputError(f"{machine} ran no application with counters")
        rows = self.warehouse.frame(f'SELECT * FROM {COUNTERS_WIDE}."{machine}"')
        rows.index = [configuration_name(key) for key in rows[list(CONFIGURATION)].itertuples(index=False, name=None)]
        return rows

    def is_simulated(self, machine: str | None = None) -> bool:
        """Whether anything of a machine, or of all, was simulated."""
        query = f"SELECT coalesce(bool_or(is_simulated), false) AS found FROM {BUNDLES.name} WHERE $m IN (machine, '')"
        return bool(self.warehouse.frame(query, {"m": machine or ""})["found"].iloc[0])

    def relative_times(self) -> dict[str, str]:
        """Reference of relative times, by machine, as in `relative to quartz`; machines with seconds only are left out.

        Where runs of a machine have seconds, too, it says how many have not.
        """
        query = f"""
            WITH runs AS (SELECT machine, labels ->> $path AS relative_to FROM {RUNS.name})
            SELECT machine, string_agg(DISTINCT relative_to, ', ' ORDER BY relative_to) AS reference,
                   count(relative_to) AS relative_count, count(*) AS runs_count
            FROM runs GROUP BY machine HAVING reference IS NOT NULL
        """
        labels = {}
        for row in self.warehouse.frame(query, {"path": f'$."{RELATIVE_TIME}"'}).to_dict("records"):
            is_mixed = row["relative_count"] < row["runs_count"]
            share = f" ({row['relative_count']} of {row['runs_count']})" if is_mixed else ""
            labels[row["machine"]] = f"relative {row['reference']}{share}"
        return labels

    def provenance(self, machine: str | None = None) -> dict[str, str]:
        """Data behind models, of all machines or of one: number of manifests, and one digest of all of theirs."""
        query = f"""
            SELECT machine, bundle_digest FROM {BUNDLES.name}
            WHERE status = 'ingested' AND $machine IN (machine, '') ORDER BY ALL
        """
        manifests = self.warehouse.frame(query, {"machine": machine or ""})
        return {
            "machines": ", ".join(sorted(manifests["machine"].unique())),
            "manifests_count": str(len(manifests)),
            "manifests_digest": digest_of("".join(manifests["bundle_digest"]).encode()),
            "is_simulated": str(self.is_simulated(machine)).lower(),
        }

    def formulas(self, machine: str) -> list[Resolved]:
        """Formulas by which the catalogue reads a machine's counters."""
        return self.catalogue.resolve(*self.warehouse.counters_of(machine))

    def unmapped_counters(self, machine: str) -> list[str]:
        """Counters of a machine that the catalogue has no use for."""
        return unmapped(self.catalogue, *self.warehouse.counters_of(machine))

    def _rows(self, query: str, machine: str | None) -> "pd.DataFrame":
        chosen = f"SELECT * FROM ({query}) WHERE $machine IN (machine, '')"
        return self.warehouse.frame(chosen, {"machine": machine or ""})
