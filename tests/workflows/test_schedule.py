"""What the scheduling experiment is asked for when somebody, or the automation, runs it again."""

import pandas as pd

from perf_assets.workflows.scheduling.schedule import Asked

NOTHING: dict[str, object] = dict.fromkeys(Asked.model_fields)


def result(**changes: object) -> pd.DataFrame:
    row = {"trace_path": "/t.swf", "nodes_count": 8, "machine": "box", "seed": 3, "champion_version": 2}
    return pd.DataFrame([{**row, "repetition": number, **changes} for number in range(5)])


def never() -> str:
    raise AssertionError("the machine is known")


def test_without_a_result_the_defaults_are_taken() -> None:
    asked = Asked.after(None, NOTHING, lambda: "most")
    assert asked == Asked(trace=None, nodes=None, machine="most", repetitions=20, seed=0)
    assert not asked.was_made(None, 1)


def test_a_result_is_asked_for_again_as_it_was() -> None:
    asked = Asked.after(result(), NOTHING, never)
    assert asked == Asked(trace="/t.swf", nodes=8, machine="box", repetitions=5, seed=3)
    assert asked.was_made(result(), 2)
    assert not asked.was_made(result(), 3)


def test_another_trace_has_its_own_nodes() -> None:
    asked = Asked.after(result(), {**NOTHING, "trace": "/u.swf"}, never)
    assert (asked.trace, asked.nodes, asked.machine) == ("/u.swf", None, "box")
    assert not asked.was_made(result(), 2)


def test_a_result_of_an_older_release_says_nothing() -> None:
    old = result().drop(columns="champion_version")
    asked = Asked.after(old, NOTHING, lambda: "most")
    assert asked.machine == "most"
    assert not asked.was_made(old, 2)
