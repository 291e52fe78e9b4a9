"""Columns that mean the same in every table that has them."""

from perf_assets.core.tables.schema import Column, Type

MACHINE = Column("machine", Type.TEXT, "Machine id, from the manifest")
IS_SIMULATED = Column("is_simulated", Type.BOOLEAN, "Whether these are simulated and not measured")
COUNTER = Column("counter", Type.TEXT, "Name as the tool wrote it")
UNIT = Column("unit", Type.TEXT, "Unit as the tool wrote it; `count` where it wrote none")
RUNNING_RATIO = Column(
    "running_ratio", Type.REAL, "Share of the run in which a multiplexed counter was live", nullable=True, minimum=0
)
