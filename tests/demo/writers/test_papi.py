import json
from pathlib import Path
from typing import Any

import numpy as np

from perf_assets.demo.writers.papi import write_papi
from tests.demo.writers.conftest import contents, profiled_run


def documents(directory: Path) -> list[Any]:
    return [json.loads(path.read_text()) for path in sorted((directory / "papi_hl_output").iterdir())]


def test_one_file_per_rank_with_the_counts_of_each_thread(tmp_path: Path) -> None:
    run = profiled_run(ranks=3, threads=2)
    write_papi(tmp_path, run)
    assert sorted(contents(tmp_path)) == [f"papi_hl_output/rank_{rank:06d}.json" for rank in range(3)]
    for rank, document in enumerate(documents(tmp_path)):
        assert list(document["event_definitions"]) == ["PAPI_TOT_INS", "bdw_ep::ARITH", "IO Bytes Read"]
        assert list(document["threads"]) == ["0", "1"]
        for thread in range(2):
            whole, solver = document["threads"][str(thread)]["regions"].values()
            assert (whole["name"], whole["parent_region_id"]) == ("computation", "-1")
            assert solver["parent_region_id"] == "0"
            assert whole["PAPI_TOT_INS"] == str(round(run.values[rank, thread, 1]))
            assert whole["real_time_nsec"] == "12345678900"
            assert all(int(solver[event]) <= int(whole[event]) for event in document["event_definitions"])


def test_gpu_events_are_read_by_the_main_thread(tmp_path: Path) -> None:
    run = profiled_run(ranks=2, threads=2, streams=1)
    assert run.gpu_streams is not None
    write_papi(tmp_path, run)
    counted = int(documents(tmp_path)[0]["threads"]["0"]["regions"]["0"]["PAPI_TOT_INS"])
    assert counted == round(run.values[0, 0, 1]) + round(run.gpu_streams[0, 1])


def test_what_cannot_be_counted_is_left_out(tmp_path: Path) -> None:
    run = profiled_run()
    run.values[:, :, 2] = np.nan
    write_papi(tmp_path, run)
    assert list(documents(tmp_path)[0]["event_definitions"]) == ["PAPI_TOT_INS", "IO Bytes Read"]


def test_text_is_laid_out_as_the_real_one(tmp_path: Path, shared_data: Path) -> None:
    def layout(path: Path) -> list[str]:
        """Indentation and structure of each line, without names and values."""
        lines = path.read_text().splitlines()
        return [
            line[: len(line) - len(line.lstrip())] + ("{" if line.endswith("{") else "}" if "}" in line else '"')
            for line in lines
        ]

    events = ("perf::TASK-CLOCK", "perf::PAGE-FAULTS", "perf::CONTEXT-SWITCHES")
    write_papi(tmp_path, profiled_run(ranks=1, threads=2, hosts=1, metrics=events))
    ours = layout(tmp_path / "papi_hl_output/rank_000000.json")
    theirs = layout(shared_data / "papi/papi_hl_sample_2threads.json")
    # Ours has a second region in each thread.
    assert ours[:31] == theirs[:31]
    assert ours[31:40] == theirs[22:31]
    assert ours[40:53] == theirs[31:44]
    assert ours[62:] == theirs[44:]
    real = json.loads((shared_data / "papi/papi_hl_sample_2threads.json").read_text())
    (found,) = documents(tmp_path)
    assert list(found) == list(real)
    assert found["event_definitions"] == real["event_definitions"]
    assert list(found["threads"]["0"]["regions"]["0"]) == list(real["threads"]["0"]["regions"]["0"])


def test_same_run_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_papi(tmp_path / name, profiled_run())
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
