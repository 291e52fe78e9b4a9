"""Addresses that `up` notes for all that links to its pages."""

from pathlib import Path

import pytest

from perf_assets.core.addresses import Addresses, noted_addresses


def test_what_up_notes_is_what_others_link_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert noted_addresses() == Addresses()
    Addresses("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3").note(tmp_path)
    noted = noted_addresses()
    assert noted.run("abc") == "http://127.0.0.1:1/runs/abc"
    assert (
        noted.version("perf-amm", 4) == "http://127.0.0.1:2/#/models/perf-amm/versions/4?workflowType=machine_learning"
    )
    assert noted.report("amm.html") == "http://127.0.0.1:3/amm.html"


def test_without_a_home_there_is_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("PERF_ASSETS_HOME", str(tmp_path))
    assert noted_addresses() == Addresses()


def test_a_damaged_note_is_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    Addresses().note(tmp_path)
    (tmp_path / "service_logs" / "addresses.json").write_text('{"dagster": 1}')
    assert noted_addresses() == Addresses()
