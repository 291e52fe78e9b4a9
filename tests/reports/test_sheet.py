from perf_assets.demo.fleet_machines import load_machines
from perf_assets.reports.machine.page import sheet_rows


def test_a_data_sheet_is_told_in_units_of_people() -> None:
    rows = sheet_rows(load_machines()["xeonmax"].to_row())
    assert rows["processor"] == "2 x Intel Xeon CPU Max 9480, 56 cores each"
    assert rows["memory bandwidth"] == "3,277 GB/s"
    assert "GPUs" not in rows
    assert sheet_rows(load_machines()["h100"].to_row())["GPUs"] == "4 x NVIDIA H100 SXM5 80GB"


def test_what_a_sheet_does_not_say_is_left_out() -> None:
    assert sheet_rows({"machine": "newbox", "name": "Newbox", "gpu_count": float("nan")}) == {"machine": "Newbox"}
