"""AMMs of all machines as one file for other programs: Parquet, or JSON with one vector per machine."""

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
    """AMMs of the encoder that described most machines, in the option it chose; and machines it has not described.

    Among encoders of as many machines it is the last in the rows, where descriptions have the one in use.

    Gives machine, seen_as, component, value, weighting, normalize, encoder_version, was_in_training, is_simulated.
    """
    chosen = rows[rows["is_chosen"]]
    by_encoder = chosen.groupby("encoder_version")["machine"].nunique()
    common = by_encoder[by_encoder == by_encoder.max()].index
    newest = chosen.loc[chosen["encoder_version"].isin(common), "encoder_version"].iloc[-1]
    current = chosen[chosen["encoder_version"] == newest]
    options = current["option"].str.split(" ", n=1, expand=True)
    vectors = current.assign(component=current["item"].astype(int), weighting=options[0], normalize=options[1])
    columns = ["machine", "seen_as", "component", "value", "weighting", "normalize", "encoder_version"]
    vectors = vectors[[*columns, "was_in_training", "is_simulated"]].reset_index(drop=True)
    return vectors, sorted(set(rows["machine"]) - set(current["machine"]))


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
    """Content of an exported JSON file."""

    encoder_version: str
    vectors: dict[str, list[float]]
    """Vectors by machine, all of one width."""


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
