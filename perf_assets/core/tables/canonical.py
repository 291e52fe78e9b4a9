"""The two canonical feature sets, as expressions over the quantities of the counter catalogue."""

from dataclasses import dataclass

from perf_assets.core.tables.schema import Column, Type


@dataclass(frozen=True)
class Feature:
    """One feature of an application run."""

    name: str
    expression: str
    """SQL over quantities; missing where one of them is.

    `branches_per_instruction` is the quantity `branches` over the instructions of the same run: counts of different
    runs are not divided by each other, because a disturbed run counts more of everything.
    """
    description: str
    unit: str | None = None
    is_share: bool = False
    """Whether it lies between 0 and 1."""

    def column(self) -> Column:
        """Its column in a table."""
        maximum = 1.0 if self.is_share else None
        return Column(
            self.name, Type.REAL, self.description, unit=self.unit, nullable=True, minimum=0.0, maximum=maximum
        )


def _share(name: str, quantity: str, description: str) -> Feature:
    return Feature(name, f"{quantity}_per_instruction", f"{description} / all instructions", is_share=True)


XAMM_FEATURES = (
    _share("branch_ratio", "branches", "Branch instructions"),
    _share("load_ratio", "loads", "Load instructions"),
    _share("store_ratio", "stores", "Store instructions"),
    Feature("l1_load_misses_count", "l1_load_misses", "L1 load misses of a rank", unit="count"),
    Feature("l1_store_misses_count", "l1_store_misses", "L1 store misses of a rank", unit="count"),
    Feature("l2_load_misses_count", "l2_load_misses", "L2 load misses of a rank", unit="count"),
    Feature("l2_store_misses_count", "l2_store_misses", "L2 store misses of a rank", unit="count"),
    _share("single_fp_ratio", "single_fp", "Single-precision instructions"),
    _share("double_fp_ratio", "double_fp", "Double-precision instructions"),
    _share("integer_ratio", "integer_arithmetic", "Integer arithmetic"),
    Feature("io_read_bytes", "io_read", "Bytes that a rank reads from files", unit="bytes"),
    Feature("io_written_bytes", "io_written", "Bytes that a rank writes to files", unit="bytes"),
    Feature("extended_page_table_count", "extended_page_table", "Extended page table activity of a rank", unit="count"),
    Feature("memory_stall_count", "memory_stall", "Cycles in which a rank waits for memory", unit="count"),
)
"""Table II of xAMM, in its order: bit i of the missing mask is feature i."""

VECTOR_FEATURES = (
    Feature("instructions_count", "instructions", "Instructions of a rank", unit="count"),
    _share("integer_ratio", "integer_arithmetic", "Integer arithmetic"),
    _share("fp_ratio", "any_fp", "Floating-point instructions"),
    Feature(
        "memory_ratio",
        "loads_per_instruction + stores_per_instruction",
        "Load and store instructions / all instructions",
        is_share=True,
    ),
    _share("control_ratio", "branches", "Branch instructions"),
    Feature(
        "cache_misses_to_hits_ratio",
        "l1_load_misses_per_instruction"
        " / nullif(greatest(loads_per_instruction - l1_load_misses_per_instruction, 0), 0)",
        "L1 load misses / L1 load hits",
    ),
    Feature("page_faults_count", "page_faults", "Page faults of a rank", unit="count"),
    Feature(
        "to_device_bytes_per_second",
        "to_device / nullif(to_device_time, 0)",
        "Bandwidth of copies from host to device",
        unit="bytes/second",
    ),
    Feature(
        "from_device_bytes_per_second",
        "from_device / nullif(from_device_time, 0)",
        "Bandwidth of copies from device to host",
        unit="bytes/second",
    ),
    Feature(
        "branch_miss_ratio",
        "branch_misses_per_instruction / nullif(branches_per_instruction, 0)",
        "Mispredicted / all branches",
        is_share=True,
    ),
    Feature(
        "streams_count", "coalesce(device_streams, threads)", "Device streams, or threads, of a rank", unit="count"
    ),
    Feature("blocks_count", "device_blocks", "Thread blocks or warps that a rank starts", unit="count"),
    Feature("io_bytes", "io_read + io_written", "Bytes that a rank reads and writes", unit="bytes"),
    Feature("files_opened_count", "files_opened", "File descriptors that a rank opens", unit="count"),
)
"""Features of the relative-performance vectors (Nichols et al.). Independent instructions and page-table levels
are counted by no tool that is read here, so they are not there."""
