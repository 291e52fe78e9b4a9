"""AMMs of all machines as one file for other programs: Parquet, or JSON with one vector a machine."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.storage.files import replacing

if TYPE_CHECKING:
    import pandas as pd


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
