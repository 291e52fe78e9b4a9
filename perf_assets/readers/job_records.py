"""Jobs as batch systems remember them: `sacct --parsable2` of Slurm, CSV of its accounting, JSON of `flux jobs`.

A finished job is a run with its time, nodes and energy. Steps only say how many tasks a job had; jobs that were
cancelled, ran out of time or still run have no time that a program took, and are left out. Who ran a job, and where,
is never kept.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perf_assets.core.measurements import Profile
from perf_assets.core.text import printable
from perf_assets.readers.files import SourceFile, read_text, unreadable
from perf_assets.readers.json_text import finite_number, parse_json_text
from perf_assets.readers.metric_names import single_value

ENERGY = "energy (J)"
_MAX_BYTES = 512 * 2**20
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_GPUS = re.compile(r"gres/gpu(?::[^=,]+)?=(\d+)")
_ENERGY_TEXT = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_COMPLETED = "COMPLETED"
_LABEL_BY_COLUMN = {"Partition": "partition", "QOS": "qos", "Cluster": "cluster"}
_MAX_NAME = 200
_ACCOUNTING = {
    "JobID": ("job_id",),
    "JobName": ("name", "job_name"),
    "Partition": ("partition",),
    "QOS": ("qos",),
    "Cluster": ("cluster",),
    "State": ("state",),
    "ElapsedRaw": ("run_time",),
    "NNodes": ("nodes_alloc", "nodes_used", "nodes_req"),
    "GPUs": ("gpus_alloc", "gpus_req"),
}
"""Columns of the accounting database in CSV by what sacct calls them, the better one first."""


def read_sacct(source: SourceFile) -> list[Profile]:
    """Read the finished jobs of `sacct -P`."""
    lines = read_text(source, _MAX_BYTES).splitlines()
    header = [name.strip() for name in lines[0].split("|")]
    jobs: dict[str, dict[str, str]] = {}
    tasks: dict[str, int] = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = line.split("|")
        if len(cells) != len(header):
            raise unreadable(source, f"has {len(cells)} fields instead of {len(header)} in line {number}: use sacct -P")
        row = dict(zip(header, cells, strict=True))
        job, _, step = row["JobID"].partition(".")
        if step:
            tasks[job] = max(tasks.get(job, 0), _whole(row.get("NTasks", "")) or 0)
        elif job in jobs:
            raise unreadable(source, f"has the job {job[:40]} twice: export without --duplicates")
        else:
            jobs[job] = row
    return _finished(source, ((f"{source.name}#{job}", row) for job, row in jobs.items()), tasks)


def read_accounting(source: SourceFile) -> list[Profile]:
    """Read the finished jobs of an accounting database that was exported as CSV; requested resources count as used."""
    text = read_text(source, _MAX_BYTES).removeprefix("\ufeff")
    try:
        header, *records = [row for row in csv.reader(text.splitlines(), strict=True) if row]
    except csv.Error as error:
        raise unreadable(source, f"is no proper CSV ({error})") from None
    places = {
        what: next((header.index(name) for name in names if name in header), None)
        for what, names in _ACCOUNTING.items()
    }
    jobs = []
    for number, record in enumerate(records, 2):
        if len(record) != len(header):
            raise unreadable(source, f"has {len(record)} cells instead of {len(header)} in row {number}: cut off")
        row = {what: record[place] for what, place in places.items() if place is not None}
        if gpus := row.pop("GPUs", ""):
            row["AllocTRES"] = f"gres/gpu={gpus}"
        # Tasks of a job array have one job_id.
        jobs.append((f"{source.name}#{number - 2}", row))
    return _finished(source, jobs, {})


def _finished(
    source: SourceFile, rows: Iterable[tuple[str, Mapping[str, str]]], tasks: Mapping[str, int]
) -> list[Profile]:
    profiles, others = [], Counter[str]()
    for run, row in rows:
        state = row.get("State", "").partition(" ")[0]
        seconds = _seconds(source, row) if state == _COMPLETED else None
        if seconds:
            profiles.append(_profile(run, row, seconds, tasks.get(row["JobID"], 0)))
        else:
            others[state or "without a state"] += 1
    return _some(source, profiles, others)


def _some(source: SourceFile, profiles: list[Profile], others: Counter[str]) -> list[Profile]:
    if not profiles:
        counted_states = ", ".join(f"{count} {printable(state)[:40]}" for state, count in others.most_common(5))
        raise unreadable(source, f"has no job that is completed, with a time ({counted_states or 'no job at all'})")
    return profiles


def _seconds(source: SourceFile, row: Mapping[str, str]) -> float | None:
    """Run time of a job."""
    if row.get("ElapsedRaw", "").strip():
        return finite_number(source, row["ElapsedRaw"], "ElapsedRaw")
    match = _ELAPSED.fullmatch(row.get("Elapsed", "").strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _profile(run: str, row: Mapping[str, str], seconds: float, tasks: int) -> Profile:
    labels = {label: printable(row[name])[:_MAX_NAME] for name, label in _LABEL_BY_COLUMN.items() if row.get(name)}
    nodes = _whole(row.get("AllocNodes", "")) or _whole(row.get("NNodes", ""))
    ranks = tasks or _whole(row.get("NTasks", "")) or 0
    gpus = sum(int(count) for count in _GPUS.findall(row.get("AllocTRES", ""))[:1])
    energy = _energy(row)
    return _job(
        run, row.get("JobName", ""), seconds, nodes, ranks, gpus if "AllocTRES" in row else None, energy, labels
    )


def _job(
    run: str,
    name: str,
    seconds: float,
    nodes: int | None,
    ranks: int,
    gpus: int | None,
    energy: float | None,
    labels: dict[str, str],
) -> Profile:
    labels |= {"app": printable(name.strip())[:_MAX_NAME] or "unnamed", "wall_seconds": f"{seconds:.15g}"}
    for key, value in (("nodes", nodes), ("ranks", ranks or None), ("gpus", gpus)):
        if value is not None:
            labels[key] = str(value)
    metrics = {} if energy is None else {ENERGY: single_value(energy, "J")}
    return Profile(
        run=run, ranks=ranks or 1, threads_per_rank=1, metrics=metrics, wall_seconds=seconds, hosts=nodes, labels=labels
    )


def _energy(row: Mapping[str, str]) -> float | None:
    """Joules; 0 is what Slurm writes where nothing measures them."""
    match = _ENERGY_TEXT.fullmatch((row.get("ConsumedEnergyRaw") or row.get("ConsumedEnergy", "")).strip())
    joules = float(match[1]) * _PREFIXES[match[2]] if match else 0.0
    return joules if 0 < joules < 1e18 else None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:10]) < 2**31 and len(text) < 11 else None


def read_flux(source: SourceFile) -> list[Profile]:
    """Read the finished jobs of `flux jobs --json`, or of JSON lines."""
    profiles, others = [], Counter[str]()
    for number, job in enumerate(_flux_jobs(source)):
        result = str(job.get("result") or job.get("state") or "")
        end = job.get("t_cleanup") or job.get("t_inactive")
        if result != _COMPLETED or not job.get("t_run") or not end:
            others[result or "without a result"] += 1
            continue
        seconds = finite_number(source, end, "t_cleanup") - finite_number(source, job["t_run"], "t_run")
        if seconds <= 0:
            raise unreadable(source, f"has a job that ends before it starts (number {number})")
        labels = {"partition": printable(str(job["queue"]))[:_MAX_NAME]} if job.get("queue") else {}
        nodes, ranks = _whole(str(job.get("nnodes", ""))), _whole(str(job.get("ntasks", ""))) or 0
        run = f"{source.name}#{printable(str(job.get('id', number)))[:60]}"
        profiles.append(_job(run, str(job.get("name", "")), seconds, nodes, ranks, None, None, labels))
    return _some(source, profiles, others)


def _flux_jobs(source: SourceFile) -> Iterator[dict[str, Any]]:
    text = read_text(source, _MAX_BYTES)
    try:
        documents = [json.loads(text)]
    except (ValueError, RecursionError):
        documents = [parse_json_text(source, line) for line in text.splitlines() if line.strip()]
    for document in documents:
        jobs = document.get("jobs", [document]) if isinstance(document, dict) else document
        if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
            raise unreadable(source, "is no list of jobs")
        yield from jobs
