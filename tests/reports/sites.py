"""A made-up site with every kind of page."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from perf_assets.reports.fleet.page import fleet_page
from perf_assets.reports.fleet.pair_gains import gain_chart, pairs_page
from perf_assets.reports.machine.page import machine_page
from perf_assets.reports.modelx.page import modelx_page
from perf_assets.reports.schedule.page import day_chart, schedule_page, sweep_chart, turnaround_chart
from perf_assets.reports.vectors.page import growth_part, score_parts, vector_page
from perf_assets.reports.xamm.amm_charts import amm_page, component_kernels, map_chart, vectors_chart
from perf_assets.reports.xamm.page import xamm_page
from tests.reports import machine_tables, result_tables
from tests.reports.fleets import every_state, well
from tests.reports.tables import embeddings, scores

ODD = "odd #1?%2F ü&<b>"
"""A name that neither an address nor HTML takes as it is."""


def results() -> dict[str, str]:
    """Pages of results by file name."""
    rows = result_tables.schedule_rows()
    charts = [turnaround_chart(rows, 1.0), sweep_chart(rows, 0.9)]
    charts.append(day_chart(result_tables.busy_day(), 8, result_tables.DAY, 2 * result_tables.DAY))
    parts = score_parts(
        result_tables.vector_rows(),
        result_tables.vector_entries(),
        result_tables.vectors(),
        result_tables.vector_scores(),
    )
    matrix, amms = machine_tables.matrix(), machine_tables.amms()
    medians = matrix.pivot_table(index="method", columns="shots", values="mape_ratio").reset_index()
    simulated = pd.DataFrame({"is_simulated": [True]})
    return {
        "xamm.html": xamm_page(scores(), embeddings()),
        "vectors.html": vector_page(simulated, [*parts, growth_part(result_tables.growth())]),
        "schedule.html": schedule_page(rows, charts, "Made up."),
        "pairs.html": pairs_page(matrix, gain_chart(matrix), medians),
        "modelx.html": modelx_page(result_tables.modelx_rows()),
        "amm.html": amm_page(
            simulated,
            vectors_chart("amm", amms),
            map_chart("amm", amms),
            component_kernels(amms, machine_tables.kernel_times(amms), [""] * 6),
        ),
    }


def write_site(folder: Path) -> Path:
    """All pages; of the machines one has no champion, and one an odd name."""
    written = results()
    for name in ("dane", ODD):
        written[f"machine-{name}.html"] = machine_page(replace(machine_tables.full((6, 8)), machine=name))
    machines = [
        replace(state, page=file if (file := f"machine-{state.machine}.html") in written else None)
        for state in (*every_state().machines, replace(well(ODD), champion=None, challenger_version=1))
    ]
    pages = {file: file.removesuffix(".html") for file in results()}
    written["index.html"] = fleet_page(replace(every_state(), machines=tuple(machines), pages=pages))
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in written.items():
        (folder / file).write_text(text)
    return folder
