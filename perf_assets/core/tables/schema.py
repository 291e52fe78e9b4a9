"""Description of a table, and its uses: DDL, checks in SQL, documentation."""

from dataclasses import dataclass
from enum import Enum


class Type(Enum):
    """Column types; the value is DuckDB's name."""

    TEXT = "VARCHAR"
    INTEGER = "BIGINT"
    REAL = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True)
class Column:
    """One column: what it holds, in which unit, and which values are possible."""

    name: str
    type: Type
    description: str
    unit: str | None = None
    nullable: bool = False
    minimum: float | None = None
    exclusive_minimum: float | None = None
    maximum: float | None = None
    allowed: tuple[str, ...] = ()

    def violation(self) -> str | None:
        """SQL condition that is true for a row whose value is not allowed; None where every value is."""
        conditions = [] if self.nullable else [f'"{self.name}" IS NULL']
        if self.minimum is not None:
            conditions.append(f'"{self.name}" < {self.minimum}')
        if self.exclusive_minimum is not None:
            conditions.append(f'"{self.name}" <= {self.exclusive_minimum}')
        if self.maximum is not None:
            conditions.append(f'"{self.name}" > {self.maximum}')
        if self.type is Type.REAL:
            conditions.append(f'NOT isfinite("{self.name}")')
        if self.allowed:
            listed = ", ".join(f"'{value}'" for value in self.allowed)
            conditions.append(f'"{self.name}" NOT IN ({listed})')
        return " OR ".join(conditions) or None

    def rule(self) -> str:
        """Rule in words, as a statement that holds for allowed values."""
        parts = [] if self.nullable else ["present"]
        if self.minimum is not None:
            parts.append(f"at least {self.minimum:g}")
        if self.exclusive_minimum is not None:
            parts.append(f"above {self.exclusive_minimum:g}")
        if self.maximum is not None:
            parts.append(f"at most {self.maximum:g}")
        if self.type is Type.REAL:
            parts.append("finite")
        if self.allowed:
            parts.append(f"one of {', '.join(self.allowed)}")
        return ", ".join(parts) or "anything"


@dataclass(frozen=True)
class Table:
    """One table: its rows, its key, its columns."""

    name: str
    description: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    of_machine: str = "machine = $machine"
    """SQL condition of the rows that belong to a machine."""

    def column_names(self) -> list[str]:
        """Names of the columns in their order."""
        return [column.name for column in self.columns]

    def ddl(self) -> str:
        """Statement that creates the table.

        Types only: keys and ranges are what the blocking checks test, so that a violation is seen and
        named instead of aborting a load halfway.
        """
        columns = ", ".join(f'"{column.name}" {column.type.value}' for column in self.columns)
        return f'CREATE TABLE IF NOT EXISTS "{self.name}" ({columns})'

    def markdown(self) -> str:
        """Section of the documentation page."""
        lines = [
            f"## {self.name}",
            "",
            self.description,
            "",
            f"Key: {', '.join(f'`{name}`' for name in self.key)}.",
            "",
            "| column | type | unit | may be missing | meaning |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| `{column.name}` | {column.type.name.lower()} | {column.unit or ''} "
            f"| {'yes' if column.nullable else ''} | {column.description} |"
            for column in self.columns
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Derivation:
    """Rows of a machine that are derived from other tables of the warehouse."""

    name: str
    """Name of the table, or of the schema that has a table for each machine where columns differ by machine."""
    query: str
    """Over the warehouse, with the parameter $machine."""
    table: Table | None
    """None where columns differ by machine."""
    is_sliced: bool = False
    """Whether the query also has the parameters $slice and $slices, and makes one slice of the rows."""


MACHINE = Column("machine", Type.TEXT, "Machine id, from the manifest")
IS_SIMULATED = Column("is_simulated", Type.BOOLEAN, "Whether these are simulated and not measured")
COUNTER = Column("counter", Type.TEXT, "Name as the tool wrote it")
UNIT = Column("unit", Type.TEXT, "Unit as the tool wrote it; `count` where it wrote none")
RUNNING_RATIO = Column(
    "running_ratio", Type.REAL, "Share of the run in which a multiplexed counter was live", nullable=True, minimum=0
)
ENVIRONMENT = Column("environment", Type.TEXT, "Software that it was made with, as far as is known", nullable=True)
