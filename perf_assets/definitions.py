"""Entry point of the Dagster code location."""

from perf_assets.defs.build import build_definitions

defs = build_definitions()
