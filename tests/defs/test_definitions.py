"""What Dagster knows of, as a list that changes only on purpose."""

import json
from pathlib import Path

from perf_assets.defs.build import build_definitions

SNAPSHOT = Path(__file__).with_name("definitions.json")


def described() -> dict[str, object]:
    """Names of everything, with what each asset depends on."""
    definitions = build_definitions()
    graph = definitions.resolve_asset_graph()
    assets = {
        key.to_user_string(): sorted(parent.to_user_string() for parent in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    checks = sorted(f"{key.asset_key.to_user_string()}:{key.name}" for key in graph.asset_check_keys)
    return {
        "assets": dict(sorted(assets.items())),
        "checks": checks,
        "jobs": sorted(job.name for job in definitions.jobs or []),
        "sensors": sorted(sensor.name for sensor in definitions.sensors or []),
        "schedules": sorted(schedule.name for schedule in definitions.schedules or []),
    }


def test_the_definitions_are_those_of_the_snapshot() -> None:
    assert described() == json.loads(SNAPSHOT.read_text()), f"if that is wanted, write described() to {SNAPSHOT.name}"


def test_no_description_is_taken_for_markup() -> None:
    """Dagster shows Markdown, and swallows what stands between angle brackets."""
    definitions = build_definitions()
    graph = definitions.resolve_asset_graph()
    texts = [graph.get(key).description or "" for key in graph.get_all_asset_keys()]
    texts += [graph.get_check_spec(key).description or "" for key in graph.asset_check_keys]
    texts += [one.description or "" for part in ("jobs", "sensors", "schedules") for one in getattr(definitions, part)]
    assert len(texts) > 60
    assert not [text for text in texts if "<" in text]
