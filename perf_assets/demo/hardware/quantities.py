"""Quantities of a run that a tool could count, before a machine gives them names.

Host quantities are kept per rank and thread, device quantities per rank with a GPU. The order is that of the columns
of the arrays that hold them.
"""

HOST = (
    "wall_seconds",
    "busy_seconds",
    "cycles",
    "instructions",
    "branches",
    "mispredicted_branches",
    "loads",
    "stores",
    "integer_instructions",
    "scalar_single_instructions",
    "scalar_double_instructions",
    "packed_single_instructions",
    "packed_double_instructions",
    "single_flops",
    "double_flops",
    "divider_cycles",
    "l1_load_misses",
    "l1_store_misses",
    "l2_load_misses",
    "l2_store_misses",
    "l3_load_misses",
    "l3_store_misses",
    "instruction_cache_misses",
    "memory_stall_cycles",
    "store_stall_cycles",
    "frontend_stall_cycles",
    "backend_stall_cycles",
    "tlb_misses",
    "page_walk_cycles",
    "page_faults",
    "context_switches",
    "migrations",
    "io_read_bytes",
    "io_written_bytes",
    "files_opened",
)
"""Misses are cache lines; instructions are retired ones; flops are operations."""

DEVICE = (
    "kernel_seconds",
    "launches",
    "to_device_bytes",
    "from_device_bytes",
    "to_device_seconds",
    "from_device_seconds",
    "copies",
    "syncs",
    "sync_seconds",
    "blocks",
    "threads",
    "single_flops_on_device",
    "double_flops_on_device",
    "l2_bytes_on_device",
    "memory_bytes_on_device",
    "allocated_bytes",
    "streams",
)
"""Blocks and threads are summed over launches."""

HOST_INDEX = {name: index for index, name in enumerate(HOST)}
DEVICE_INDEX = {name: index for index, name in enumerate(DEVICE)}

RUN_TO_RUN_SPREAD = {
    "mispredicted_branches": 0.02,
    "l1_load_misses": 0.02,
    "l1_store_misses": 0.02,
    "l2_load_misses": 0.03,
    "l2_store_misses": 0.03,
    "l3_load_misses": 0.04,
    "l3_store_misses": 0.04,
    "instruction_cache_misses": 0.1,
    "memory_stall_cycles": 0.04,
    "store_stall_cycles": 0.05,
    "frontend_stall_cycles": 0.05,
    "backend_stall_cycles": 0.04,
    "tlb_misses": 0.05,
    "page_walk_cycles": 0.05,
    "page_faults": 0.01,
    "context_switches": 0.3,
    "migrations": 0.5,
    "io_read_bytes": 0.0,
    "io_written_bytes": 0.0,
    "files_opened": 0.0,
}
"""Standard deviation of the logarithm from run to run; what is not here is almost exact."""
ALMOST_EXACT_SPREAD = 0.003
