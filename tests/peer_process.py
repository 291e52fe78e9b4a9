"""What hatchet, caliper-reader and thicket read, in a process of its own; see peers.py."""

import pickle
import sys
from pathlib import Path
from typing import Any

import pandas as pd


def hatchet_rows(folder: str, reader: str, options: dict[str, Any]) -> pd.DataFrame:
    import hatchet

    frame = getattr(hatchet.GraphFrame, reader)(folder, **options)
    nodes = frame.dataframe.index.get_level_values("node")
    rows: pd.DataFrame = frame.dataframe.assign(is_root=[node in frame.graph.roots for node in nodes])
    return rows.reset_index(drop=True)


def caliper_files(*files: str) -> list[dict[str, Any]]:
    import caliperreader

    return [_caliper_file(caliperreader, file) for file in files]


def _caliper_file(caliperreader: Any, file: str) -> dict[str, Any]:
    reader = caliperreader.CaliperReader()
    reader.read(file)
    return {
        "records": reader.records,
        "globals": reader.globals,
        "attributes": {name: attribute.metadata() for name, attribute in reader.db.attributes.items()},
    }


def thicket_regions(*files: str) -> dict[tuple[str, tuple[str, ...]], dict[str, float]]:
    """Times by file and region path, as thicket composes them."""
    import thicket

    composed = thicket.Thicket.from_caliperreader(list(files), disable_tqdm=True)
    file_of = {profile: str(file) for profile, file in composed.profile_mapping.items()}
    columns = ["Min time/rank", "Max time/rank", "Avg time/rank", "Total time"]
    return {
        (file_of[profile], tuple(part.frame["name"] for part in node.path())): dict(row[columns])
        for (node, profile), row in composed.dataframe.iterrows()
    }


def thicket_of_json(file: str) -> tuple[dict[tuple[str, str], dict[str, Any]], list[dict[str, Any]]]:
    """Rows by run and path, and metadata, after what people do with a thicket: filter, statistics, a second writing."""
    import thicket

    loaded = thicket.Thicket.from_json(Path(file).read_text())
    machines = loaded.metadata["machine"].unique()
    kept = sum(len(loaded.filter_metadata(lambda row, name=name: row["machine"] == name).profile) for name in machines)
    assert kept == len(loaded.profile)
    again = thicket.Thicket.from_json(loaded.to_json())
    assert len(again.dataframe) == len(loaded.dataframe)
    rows = {
        (profile, "/".join(part.frame["name"] for part in node.path())): dict(row.dropna())
        for (node, profile), row in loaded.dataframe.iterrows()
    }
    return rows, loaded.metadata.to_dict("records")


if __name__ == "__main__":
    question, arguments, answer = sys.argv[1:]
    found = globals()[question](*pickle.loads(Path(arguments).read_bytes()))
    Path(answer).write_bytes(pickle.dumps(found))
