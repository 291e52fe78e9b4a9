"""Names that others choose are text: in SQL, spreadsheets, terminals, Markdown, pictures and pages."""

import csv
import io
import json
import re
import time
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from perf_assets.cli.support.output import print_table, say
from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.core.text import csv_of, in_markdown, markdown_rows
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.reports.style import save
from perf_assets.serving.asked_runs import stored_runs
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import profile_facts

PACKAGE = Path(__file__).resolve().parents[2] / "perf_assets"
HOSTILE = [
    *("a\"b'c", "x'; DROP TABLE raw_profiles__runs; --", "\"; ATTACH 'evil.db'; --", "$machine", "$slice", "?", "\\"),
    *("__class__", "{{7*7}}", "<script>alert(1)</script>", "[/x]", "[a](javascript:b)", "=cmd|' /C calc'!A0", "$x^$"),
    *("a\nb", "a\0b", "a\x1b[2Jb", "app", "labels", "A", "a"),
]


def land_counters(lake: Lake, names: list[str], name: str, **facts: object) -> None:
    counters = {name: str(position + 1) for position, name in enumerate(names)}
    region = {"name": "r", "parent_region_id": "-1", "real_time_nsec": "5", **counters}
    document = {"papi_version": "7", "threads": {"0": {"regions": {"0": region}}}}
    text = json.dumps(document)
    land(lake, profile_facts(**facts), name, lambda folder: (folder / "rank_0.json").write_text(text) and None)


@pytest.fixture
def attacked(lake: Lake) -> Warehouse:
    land_counters(lake, HOSTILE, "hostile", app="'; DROP TABLE raw_profiles__runs; --", args="-n '\"; --")
    land_counters(lake, ["PAPI_TOT_INS"], "good")
    assert ingest_machine(lake, "quartz", read_bundle).ingested_count == 2
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine("quartz")
    warehouse.derive_machine("quartz")
    return warehouse


def test_counters_and_applications_are_no_sql(attacked: Warehouse, lake: Lake) -> None:
    assert not list(lake.root.rglob("evil*"))
    stored = attacked.frame("SELECT counter, value_sum FROM raw_profiles__counters WHERE bundle = 'hostile'")
    values = dict(zip(stored["counter"], stored["value_sum"], strict=True))
    shown = {"a\nb": "a\\nb", "a\0b": "a\\x00b", "a\x1b[2Jb": "a\\x1b[2Jb"}
    assert values == {"real_time_nsec": 5.0} | {shown.get(n, n): p + 1.0 for p, n in enumerate(HOSTILE)}
    wide = attacked.frame("SELECT * FROM core_runs__counters_wide.quartz ORDER BY app")
    assert wide["x'; DROP TABLE raw_profiles__runs; --"].iloc[0] == 2 / 2
    assert wide["$slice"].iloc[0] == 5 / 2
    assert [run.app for run in stored_runs(lake, "quartz", app="'; DROP TABLE raw_profiles__runs; --")]
    assert stored_runs(lake, "quartz", app="Kripke")[0].app == "Kripke"
    with pytest.raises(BadInputError, match="no run of quartz"):
        stored_runs(lake, "quartz", app="x' OR '1'='1")


@pytest.mark.slow
def test_counters_without_number_are_refused_and_many_are_cheap(lake: Lake) -> None:
    land_counters(lake, [f"c{number}" for number in range(20_000)], "too-many")
    land_counters(lake, [f"c{number}" for number in range(2_000)], "many")
    outcome = ingest_machine(lake, "quartz", read_bundle)
    assert (outcome.ingested_count, outcome.quarantined_count) == (1, 1)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine("quartz")
    started = time.process_time()
    warehouse.derive_machine("quartz")
    # A minute and gigabytes where every column is an aggregate of its own.
    assert time.process_time() - started < 10
    assert warehouse.frame("SELECT * FROM core_runs__counters_wide.quartz")["c1999"].tolist() == [1000.0]


@pytest.mark.parametrize("facts", [{"app": "a\nb"}, {"app": "a\x1b[2J"}, {"args": "a\x07"}, {"app": "\u202eb"}])
def test_names_in_a_manifest_can_be_printed(facts: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="cannot be printed"):
        profile_facts(**facts)


def test_an_application_in_a_table_can_be_printed(lake: Lake) -> None:
    text = "app,x,wall_seconds\n\x1b[2J,1,2\n"
    facts = profile_facts(kind="samples", app=None, target="wall_seconds")
    land(lake, facts, "b1", lambda folder: (folder / "t.csv").write_text(text) and None)
    assert ingest_machine(lake, "quartz", read_bundle).quarantined_count == 1


def test_quantities_of_a_sites_catalogue_are_names(tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text('quantities: {"x; DROP TABLE y": {unit: count, description: d}}\n')
    with pytest.raises(BadInputError, match="quantities"):
        load_catalogue([file])


def test_no_cell_of_a_csv_is_a_formula_and_numbers_stay_numbers() -> None:
    texts = ["=1+1", "+1", "-n 64", "@SUM(A1)", "\t=x", "\r=x", "a\r=x", "a=b"]
    rows = pd.DataFrame({"app": texts, "=x": texts, "seconds": [-1.5] * 8, "count": [-2] * 8, "is_it": [True] * 8})
    head, *found = csv.reader(io.StringIO(csv_of(rows), newline=""))
    assert head == ["app", "'=x", "seconds", "count", "is_it"]
    assert [row[0] for row in found] == [
        *(f"'{text}" for text in texts[:4]),
        *("\\t=x", "\\r=x", "a\\r=x", "a=b"),
    ]
    assert {tuple(row[2:]) for row in found} == {("-1.5", "-2", "True")}


def test_every_csv_for_people_is_made_without_formulas() -> None:
    digests = {"workflows/models/paired_inputs.py", "workflows/machines/describe.py"}
    landed = {"demo/fleet.py", "workflows/landing/real_lake.py"}
    allowed = {"core/text.py", "models/source/amm_options.py", *landed, *digests}
    """The one place; a stored model's numbers; tables that land as they are; digests of rows, which nobody opens."""
    writers = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if ".to_csv(" in file.read_text()}
    assert writers == allowed
    for file in digests:
        text = (PACKAGE / file).read_text()
        assert text.count(".to_csv(") == text.count(".to_csv(index=False).encode())"), file


@pytest.mark.parametrize("name", [*HOSTILE, "[link=file:///etc]x[/link]", "\u202egnp"])
def test_a_terminal_gets_text_only(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(name, [name, "b"], [[name, 1]])
    say(name)
    with pytest.raises(BadInputError) as error:
        raise BadInputError(name)
    found = capsys.readouterr()
    assert all(line.isprintable() for line in (found.out + found.err).splitlines())
    assert str(error.value).isprintable()
    if name in ("[/x]", "[link=file:///etc]x[/link]"):
        assert name in found.out


def test_messages_are_not_as_long_as_the_names_in_them() -> None:
    assert len(str(BadInputError("x" * 10**6))) < 5000


def test_markdown_of_names_is_text_in_its_cell() -> None:
    rows = pd.DataFrame({name: [name, "x"] for name in HOSTILE if name.strip()} | {"seconds": [1.23456, 2.0]})
    text = markdown_rows(rows, ".2f")
    assert not re.search(r"<(?!/?$)|(?<!\\)\[|(?<!\\)`", text)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()} == {rows.shape[1] + 1}
    assert "1.23" in text
    assert in_markdown("![x](http://e)") == r"!\[x\](http://e)"
    wide = pd.DataFrame([range(1000)], columns=[f"c{number}" for number in range(1000)])
    assert len(markdown_rows(wide)) < 2000


def test_all_markdown_of_dagster_is_made_of_text() -> None:
    for file in (PACKAGE / "defs").glob("*.py"):
        assert "to_markdown" not in file.read_text(), file


def test_pages_escape_what_they_are_given() -> None:
    templates = sorted((PACKAGE / "reports" / "templates").glob("*.jinja"))
    assert templates
    own_script = "<script>{{ script | safe }}</script>"
    """A file of ours without data in it; its digest is in the page's content policy (tests/reports/test_pages.py)."""
    assert "{{" not in (PACKAGE / "reports" / "templates" / "page.js.jinja").read_text()
    for file in templates:
        text = file.read_text()
        if file.name == "page.html.jinja":
            assert text.count(own_script) == 1
            text = text.replace(own_script, "")
        assert not re.search(r"\|\s*safe\b|autoescape\s+false|<script", text), file
        for attribute in re.findall(r"<[^>]*?\s(?:href|src|alt|class|id)=([^\s>]+)", text):
            assert attribute.startswith('"'), f"{file}: {attribute} without quotes"


@pytest.mark.parametrize("name", ["$x^$", "$\\frac$", "$\\mathdefault{\\frac}$", "a$b$c"])
def test_a_picture_with_dollars_in_names_is_drawn(name: str) -> None:
    figure = Figure(figsize=(2, 2))
    axes = figure.subplots()
    axes.set_yscale("log")
    axes.plot([1, 2], [1, 1000], label=name)
    axes.set_xticks([1, 2], [name, "b"])
    axes.set_title(name)
    axes.legend()
    buffer = io.BytesIO()
    save(figure, buffer, 50)
    assert buffer.getvalue().startswith(b"\x89PNG")
