"""AMMs of all machines as one file for other programs: Parquet, or JSON with one vector a machine."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.infra.files import replacing

if TYPE_CHECKING:
    import pandas as pd


def of_one_encoder(rows: "pd.DataFrame") -> tuple["pd.DataFrame", list[str]]:
    """Rows of the encoder that most machines were described by, and the machines of others, to be described again."""
    common = rows["encoder_version"].mode().iloc[0]
    is_current = rows["encoder_version"] == common
    return rows[is_current], sorted(rows.loc[~is_current, "machine"].unique())


def export_amms(rows: "pd.DataFrame", path: Path) -> "pd.DataFrame":
    """Write rows of `model_amm__machines` to a .json or .parquet file; gives machines x components."""
    if path.suffix not in (".json", ".parquet"):
        raise BadInputError(f"{path.name}: AMMs are written to a .json or a .parquet file")
    vectors = rows.pivot(index="seen_as", columns="component", values="value")
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            rows.to_parquet(temporary, index=False)
        else:
            first = rows.iloc[0]
            document = {
                "encoder_version": first["encoder_version"],
                "weighting": first["weighting"],
                "normalize": first["normalize"],
                "is_simulated": bool(rows["is_simulated"].any()),
                "machines": {str(name): [float(v) for v in vector] for name, vector in vectors.T.items()},
            }
            temporary.write_text(json.dumps(document, indent=2))
    return vectors


@dataclass(frozen=True)
class StoredAmms:
    """What an exported JSON file holds."""

    encoder_version: str
    vectors: dict[str, list[float]]
    """By machine, all of one width."""


def read_amms(path: Path) -> StoredAmms:
    """Read an exported JSON file."""
    try:
        document = json.loads(path.read_text("utf-8"))
        vectors = {str(name): [float(value) for value in vector] for name, vector in document["machines"].items()}
        version = str(document["encoder_version"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadableFileError(f"{path.name} is no file of AMMs: make it with 'func: amm'") from None
    widths = {len(vector) for vector in vectors.values()}
    if len(widths) != 1 or not min(widths) or not all(math.isfinite(v) for vector in vectors.values() for v in vector):
        raise UnreadableFileError(f"{path.name}: AMMs are vectors of finite numbers, all of one width")
    return StoredAmms(version, vectors)
