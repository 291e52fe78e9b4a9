"""The counters of the fleet's machines under their own names, as sums of modelled quantities.

A table maps the name that a tool writes to coefficients over `quantities.HOST` or `quantities.DEVICE`. Where two
machines count the same thing otherwise, the coefficients say how. What a machine cannot measure is not there.
"""

from collections.abc import Mapping

Table = Mapping[str, Mapping[str, float]]
"""Counter -> quantity -> coefficient."""

# FP_ARITH counts a fused multiply-add twice; three instructions do four operations on average.
_PER_FP_INSTRUCTION = 4 / 3
_ALL_FP = {
    "scalar_single_instructions": 1.0,
    "scalar_double_instructions": 1.0,
    "packed_single_instructions": 1.0,
    "packed_double_instructions": 1.0,
}

HPCRUN_TIME: Table = {"REALTIME (sec)": {"wall_seconds": 1.0}}
CPU_TIME: Table = {"CPUTIME (sec)": {"busy_seconds": 1.0}}
HPCRUN_FILES: Table = {
    "IO Bytes Read": {"io_read_bytes": 1.0},
    "IO Bytes Written": {"io_written_bytes": 1.0},
    "syscalls:sys_enter_openat": {"files_opened": 1.0},
}

PAPI_INSTRUCTIONS: Table = {"PAPI_TOT_INS": {"instructions": 1.0}}
PAPI_MIX: Table = {
    "PAPI_BR_INS": {"branches": 1.0},
    "PAPI_LD_INS": {"loads": 1.0},
    "PAPI_SR_INS": {"stores": 1.0},
}
INTEL_CACHES: Table = {
    # Demand requests only: what a prefetcher fetched in time is not a miss.
    "PAPI_L1_LDM": {"l1_load_misses": 0.85},
    "PAPI_L1_STM": {"l1_store_misses": 1.0},
    "PAPI_L2_LDM": {"l2_load_misses": 0.6},
    "PAPI_L2_STM": {"l2_store_misses": 0.8},
    # Stalls on stores only.
    "PAPI_MEM_WCY": {"store_stall_cycles": 1.0},
}


def intel_arithmetic(prefix: str, packed: Mapping[str, str]) -> Table:
    """Floating-point and divider events of a server core; `packed` maps umasks of packed events to quantities."""
    return {
        # Scalar instructions only: packed ones have events of their own.
        f"{prefix}::FP_ARITH:SCALAR_SINGLE": {"scalar_single_instructions": _PER_FP_INSTRUCTION},
        f"{prefix}::FP_ARITH:SCALAR_DOUBLE": {"scalar_double_instructions": _PER_FP_INSTRUCTION},
        **{f"{prefix}::FP_ARITH:{umask}": {quantity: _PER_FP_INSTRUCTION} for umask, quantity in packed.items()},
        # Cycles in which the divider is busy, whatever its name suggests.
        f"{prefix}::ARITH": {"divider_cycles": 1.0},
        # Walks of extended tables are a small part of all walks where nothing is virtualised.
        f"{prefix}::EPT": {"page_walk_cycles": 0.05},
    }


INTEL_EVENTS: Table = {"PAPI_BR_MSP": {"mispredicted_branches": 1.0}, "perf::PAGE-FAULTS": {"page_faults": 1.0}}

PERF_INSTRUCTIONS: Table = {"perf::INSTRUCTIONS": {"instructions": 1.0}}
PERF_STALLS: Table = {
    "perf::STALLED-CYCLES-FRONTEND": {"frontend_stall_cycles": 1.0},
    "perf::STALLED-CYCLES-BACKEND": {"backend_stall_cycles": 1.0},
}
PERF_EVENTS: Table = {
    "perf::BRANCH-MISSES": {"mispredicted_branches": 1.0},
    "perf::PAGE-FAULTS": {"page_faults": 1.0},
}

ZEN2_MIX: Table = {
    "PAPI_BR_INS": {"branches": 1.0},
    # Dispatched, not retired: wrong paths count, loads fused with a store do not.
    "amd64_fam17h_zen2::LS_DISPATCH:LD_DISPATCH": {"loads": 0.96, "mispredicted_branches": 6.0},
    "amd64_fam17h_zen2::LS_DISPATCH:STORE_DISPATCH": {"stores": 0.97, "mispredicted_branches": 2.0},
}
ZEN2_CACHES: Table = {
    # Refills, for loads and stores alike.
    "perf::L1-DCACHE-LOAD-MISSES": {"l1_load_misses": 1.0, "l1_store_misses": 1.0},
    "perf::L1-ICACHE-LOAD-MISSES": {"instruction_cache_misses": 1.0},
    **PERF_STALLS,
}

POWER9_MIX: Table = {
    "perf::BRANCH-INSTRUCTIONS": {"branches": 1.0},
    "power9::PM_LD_CMPL": {"loads": 1.0},
    "power9::PM_ST_CMPL": {"stores": 1.0},
    # Single and double precision, scalar and packed.
    "PAPI_FP_INS": _ALL_FP,
    "PAPI_INT_INS": {"integer_instructions": 1.0},
}
POWER9_CACHES: Table = {
    # Lines of 128 bytes; L1 writes through and does not allocate, so a store keeps missing.
    "power9::PM_LD_MISS_L1": {"l1_load_misses": 0.55},
    "power9::PM_ST_MISS_L1": {"l1_store_misses": 2.5},
    "power9::PM_L2_LD_MISS": {"l2_load_misses": 0.5},
    "power9::PM_L2_ST_MISS": {"l2_store_misses": 0.5},
    **PERF_STALLS,
}

SAPPHIRE_RAPIDS_MEMORY: Table = {
    "PAPI_L1_LDM": {"l1_load_misses": 0.8},
    "PAPI_L2_LDM": {"l2_load_misses": 0.5},
    "spr::L2_RQSTS:ALL_RFO": {"l1_store_misses": 1.0},
    "spr::L2_RQSTS:RFO_MISS": {"l2_store_misses": 0.9},
    "spr::MEMORY_ACTIVITY:STALLS_L1D_MISS": {"memory_stall_cycles": 0.9},
}
SAPPHIRE_RAPIDS_ARITHMETIC: Table = {
    "spr::FP_ARITH_INST_RETIRED:SCALAR_SINGLE": {"scalar_single_instructions": _PER_FP_INSTRUCTION},
    "spr::FP_ARITH_INST_RETIRED:SCALAR_DOUBLE": {"scalar_double_instructions": _PER_FP_INSTRUCTION},
    "spr::FP_ARITH_INST_RETIRED:512B_PACKED_DOUBLE": {"packed_double_instructions": _PER_FP_INSTRUCTION},
    "spr::ARITH:DIV_ACTIVE": {"divider_cycles": 0.8},
    "spr::DTLB_LOAD_MISSES:WALK_COMPLETED": {"tlb_misses": 0.7},
    "PAPI_BR_MSP": {"mispredicted_branches": 1.0},
}
PAPI_SYSTEM: Table = {
    "perf::PAGE-FAULTS": {"page_faults": 1.0},
    "perf::CONTEXT-SWITCHES": {"context_switches": 1.0},
    "io:::rchar": {"io_read_bytes": 1.0},
    "io:::wchar": {"io_written_bytes": 1.0},
}

PERF_STAT: Table = {
    "context-switches": {"context_switches": 1.0},
    "cpu-migrations": {"migrations": 1.0},
    "page-faults": {"page_faults": 1.0},
    "cycles": {"cycles": 1.0},
    "instructions": {"instructions": 1.0},
    "stalled-cycles-frontend": {"frontend_stall_cycles": 1.0},
    "branches": {"branches": 1.0},
    "branch-misses": {"mispredicted_branches": 1.0},
    # On this family: requests to L2, and those that miss it.
    "cache-references": {"l1_load_misses": 1.0, "l1_store_misses": 1.0, "instruction_cache_misses": 1.0},
    "cache-misses": {"l2_load_misses": 0.7, "l2_store_misses": 0.7},
    "L1-dcache-loads": {"loads": 1.0, "stores": 0.3},
    "L1-dcache-load-misses": {"l1_load_misses": 1.0, "l1_store_misses": 1.0},
    "dTLB-load-misses": {"tlb_misses": 1.0},
    "syscalls:sys_enter_openat": {"files_opened": 1.0},
}
PERF_STAT_SOFTWARE = frozenset(("context-switches", "cpu-migrations", "page-faults", "syscalls:sys_enter_openat"))
"""Always live; the others share six hardware counters."""

PERF_STAT_ARM: Table = {
    "context-switches": {"context_switches": 1.0},
    "cpu-migrations": {"migrations": 1.0},
    "page-faults": {"page_faults": 1.0},
    "cycles": {"cycles": 1.0},
    "instructions": {"instructions": 1.0},
    "stalled-cycles-backend": {"backend_stall_cycles": 1.0},
    "branches": {"branches": 1.0},
    "branch-misses": {"mispredicted_branches": 1.0},
    # On this architecture: accesses to L1, and those that miss it.
    "cache-references": {"loads": 1.0, "stores": 1.0},
    "cache-misses": {"l1_load_misses": 1.0, "l1_store_misses": 1.0},
    "L1-dcache-loads": {"loads": 1.0, "stores": 1.0},
    "L1-dcache-load-misses": {"l1_load_misses": 1.0, "l1_store_misses": 1.0},
    "dTLB-load-misses": {"tlb_misses": 1.0},
    "syscalls:sys_enter_openat": {"files_opened": 1.0},
}

ZEN3_SAMPLES: Table = {
    "ex_ret_instr": {"instructions": 1.0},
    "ex_ret_brn": {"branches": 1.0},
    "ex_ret_brn_misp": {"mispredicted_branches": 1.0},
    "ls_dispatch.ld_dispatch": {"loads": 0.96, "mispredicted_branches": 7.0},
    "ls_dispatch.store_dispatch": {"stores": 0.97, "mispredicted_branches": 2.0},
    # Operations, not instructions; single and double together.
    "fp_ret_sse_avx_ops.all": {"single_flops": 1.0, "double_flops": 1.0},
    "ls_any_fills_from_sys.all": {"l1_load_misses": 1.0, "l1_store_misses": 1.0},
    "l2_cache_misses_from_dc_misses": {"l2_load_misses": 1.0, "l2_store_misses": 1.0},
    "ls_l1_d_tlb_miss.all_l2_miss": {"tlb_misses": 1.0},
    "ls_not_halted_cyc": {"cycles": 1.0},
    "page_faults": {"page_faults": 1.0},
    "read_bytes": {"io_read_bytes": 1.0},
    "write_bytes": {"io_written_bytes": 1.0},
    "openat_calls": {"files_opened": 1.0},
}
SAPPHIRE_RAPIDS_SAMPLES: Table = {
    "inst_retired.any": {"instructions": 1.0},
    "br_inst_retired.all_branches": {"branches": 1.0},
    "br_misp_retired.all_branches": {"mispredicted_branches": 1.0},
    "mem_inst_retired.all_loads": {"loads": 1.0},
    "mem_inst_retired.all_stores": {"stores": 1.0},
    # Loads that wait for a line already on its way are counted apart.
    "mem_load_retired.l1_miss": {"l1_load_misses": 0.5},
    "mem_load_retired.l2_miss": {"l2_load_misses": 0.4},
    "l2_rqsts.all_rfo": {"l1_store_misses": 1.0},
    "l2_rqsts.rfo_miss": {"l2_store_misses": 0.9},
    "fp_arith_inst_retired.scalar_single": {"scalar_single_instructions": _PER_FP_INSTRUCTION},
    "fp_arith_inst_retired.scalar_double": {"scalar_double_instructions": _PER_FP_INSTRUCTION},
    "arith.div_active": {"divider_cycles": 0.8},
    "cycle_activity.stalls_total": {"backend_stall_cycles": 1.0},
    "page_faults": {"page_faults": 1.0},
    "read_bytes": {"io_read_bytes": 1.0},
    "write_bytes": {"io_written_bytes": 1.0},
}

HPCRUN_GPU: Table = {
    "GPUOPS (sec)": {"kernel_seconds": 1.0, "to_device_seconds": 1.0, "from_device_seconds": 1.0},
    "GKER (sec)": {"kernel_seconds": 1.0},
    "GKER:COUNT": {"launches": 1.0},
    "GKER:BLKS_ACUMU": {"blocks": 1.0},
    "GKER:BLK_THR_ACUMU": {"launches": 256.0},
    "GXCOPY (sec)": {"to_device_seconds": 1.0, "from_device_seconds": 1.0},
    "GXCOPY:COUNT": {"copies": 1.0},
    "GXCOPY:H2D (B)": {"to_device_bytes": 1.0},
    "GXCOPY:D2H (B)": {"from_device_bytes": 1.0},
}
NVIDIA_GPU: Table = {**HPCRUN_GPU, "GSYNC (sec)": {"sync_seconds": 1.0}, "GSYNC:COUNT": {"syncs": 1.0}}
AMD_GPU: Table = {
    **HPCRUN_GPU,
    "GMEM:DEV (B)": {"allocated_bytes": 1.0},
    # A wavefront has 64 threads.
    "rocprof::SQ_WAVES": {"threads": 1 / 64},
}

ROCPROF_SAMPLES: Table = {
    "SQ_WAVES": {"threads": 1 / 64},
    "SQ_INSTS_VALU": {"single_flops_on_device": 0.75 / 64, "double_flops_on_device": 0.75 / 64, "threads": 0.3},
    # Requests of 64 bytes to memory.
    "TCC_EA_RDREQ_sum": {"memory_bytes_on_device": 0.65 / 64},
    "TCC_EA_WRREQ_sum": {"memory_bytes_on_device": 0.35 / 64},
    "kernel_dispatches": {"launches": 1.0},
    "kernel_duration_ns": {"kernel_seconds": 1e9},
    "hip_memcpy_h2d_bytes": {"to_device_bytes": 1.0},
    "hip_memcpy_h2d_ns": {"to_device_seconds": 1e9},
    "hip_memcpy_d2h_bytes": {"from_device_bytes": 1.0},
    "hip_memcpy_d2h_ns": {"from_device_seconds": 1e9},
    "hip_streams": {"streams": 1.0},
}
NSIGHT_SAMPLES: Table = {
    "gpu__time_duration.sum": {"kernel_seconds": 1e9},
    "launch__count": {"launches": 1.0},
    "launch__grid_size.sum": {"blocks": 1.0},
    "sm__warps_launched.sum": {"threads": 1 / 32},
    "smsp__sass_thread_inst_executed_op_fp64.sum": {"double_flops_on_device": 0.75},
    "smsp__sass_thread_inst_executed_op_fp32.sum": {"single_flops_on_device": 0.75},
    "lts__t_bytes.sum": {"l2_bytes_on_device": 1.0},
    "dram__bytes.sum": {"memory_bytes_on_device": 1.0},
    "memcpy_htod_bytes": {"to_device_bytes": 1.0},
    "memcpy_htod_ns": {"to_device_seconds": 1e9},
    "memcpy_dtoh_bytes": {"from_device_bytes": 1.0},
    "memcpy_dtoh_ns": {"from_device_seconds": 1e9},
    "cuda_streams": {"streams": 1.0},
}
"""Times in nanoseconds."""
