"""What the scheduling experiment is asked for: a request, completed by the result that is stored."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import pandas as pd

_REPETITIONS = 20


class Asked(BaseModel):
    """A trace on a machine, with everything that decides the result but the target model."""

    model_config = ConfigDict(frozen=True)

    trace: str | None
    nodes: int | None
    machine: str
    repetitions: int
    seed: int

    @classmethod
    def after(
        cls, before: "pd.DataFrame | None", given: Mapping[str, object], default_machine: Callable[[], str]
    ) -> "Asked":
        """What is given; the rest as in the stored result, so that it follows its champion, or the defaults.

        Another trace has other nodes: those of the stored result go with its own trace only.
        """
        known = {} if before is None else _request(before)
        if given.get("trace") is not None:
            known = {name: value for name, value in known.items() if name not in ("trace", "nodes")}
        wanted = {**known, **{name: value for name, value in given.items() if value is not None}}
        wanted.setdefault("trace", None)
        wanted.setdefault("nodes", None)
        wanted.setdefault("seed", 0)
        wanted.setdefault("repetitions", _REPETITIONS)
        return cls.model_validate(wanted if "machine" in wanted else {**wanted, "machine": default_machine()})

    def was_made(self, before: "pd.DataFrame | None", champion_version: int) -> bool:
        """Whether the stored result is of this request and this version of the target model."""
        known = {} if before is None else _request(before)
        if before is None or not known or int(before["champion_version"].iloc[0]) != champion_version:
            return False
        nodes = self.nodes if self.nodes is not None else known["nodes"]
        return known == {**self.model_dump(), "nodes": nodes}


def _request(rows: "pd.DataFrame") -> dict[str, object]:
    """Request behind a stored result; nothing of one that was stored before this was kept."""
    if "champion_version" not in rows or rows.empty:
        return {}
    first = rows.iloc[0]
    return {
        "trace": None if first["trace_path"] is None else str(first["trace_path"]),
        "nodes": int(first["nodes_count"]),
        "machine": str(first["machine"]),
        "repetitions": int(rows["repetition"].max()) + 1,
        "seed": int(first["seed"]),
    }
