"""Configurations from raw tables: merged counters, canonical features, pairs of machines.

As queries, which the warehouse runs for one machine at a time.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from perf_assets.core.catalogue import Catalogue, Resolved, load_catalogue
from perf_assets.core.environment import DIGEST_CHARACTERS, UNKNOWN, parts_of
from perf_assets.core.measurements import is_run_time
from perf_assets.core.tables.canonical import VECTOR_FEATURES, XAMM_FEATURES, Feature
from perf_assets.core.tables.runs import (
    CONFIGURATION,
    COUNTERS_WIDE,
    CURRENT_RUNS,
    ENVIRONMENTS,
    FEATURES,
    MERGED_COUNTERS,
    TIMED_RUNS,
    UNMATCHED,
    VECTOR_FEATURES_TABLE,
)
from perf_assets.core.tables.schema import Derivation, Table

_CONFIGURATION = ", ".join(CONFIGURATION)
_RUN_NAMES = "to_json(list(bundle || '/' || run ORDER BY bundle, run))::VARCHAR"


def deriving(
    site_catalogues: Sequence[Path], named: Mapping[str, str] | None = None
) -> Callable[[str, Sequence[str], str | None], list[Derivation]]:
    """`derivations` with the catalogue of this package and a site's files, and environments that it names."""
    return partial(derivations, load_catalogue(site_catalogues), named or {})


def derivations(
    catalogue: Catalogue,
    named: Mapping[str, str],
    machine: str,
    counters: Sequence[str],
    microarchitecture: str | None,
) -> list[Derivation]:
    """Tables derived for a machine that has these counters, in the order in which it is to be made.

    `named` are default environments by machine.
    """
    resolved = catalogue.resolve(counters, microarchitecture)
    return [
        Derivation(ENVIRONMENTS.name, _environments(named.get(machine)), ENVIRONMENTS),
        Derivation(MERGED_COUNTERS.name, _merged_counters(catalogue, resolved), MERGED_COUNTERS, is_sliced=True),
        _features(FEATURES, XAMM_FEATURES, catalogue, resolved),
        _features(VECTOR_FEATURES_TABLE, VECTOR_FEATURES, catalogue, resolved),
        Derivation(COUNTERS_WIDE, _wide(catalogue, counters), None),
        Derivation(UNMATCHED.name, _UNMATCHED, UNMATCHED),
    ]


def unmapped(catalogue: Catalogue, counters: Sequence[str], microarchitecture: str | None) -> list[str]:
    """Counters that no quantity is made of. They are kept, and used where machines are taken as they are.

    The run time needs no meaning.
    """
    used = {name for formula in catalogue.resolve(counters, microarchitecture) for name in formula.counters}
    return sorted(name for name in set(counters) - used if not is_run_time(name))


def _merged_counters(catalogue: Catalogue, resolved: Sequence[Resolved]) -> str:
    instructions = [name for formula in resolved if formula.quantity == "instructions" for name in formula.counters]
    counts = [f"first(value_mean_over_ranks) FILTER (counter = {_literal(name)})" for name in instructions]
    # Arguments are compared once a run, not once a counter: that is what takes time.
    return f"""
        WITH chosen AS (
            SELECT machine, bundle, run, app, {_comparable_args(catalogue)} AS args, ranks, threads
            FROM {CURRENT_RUNS}
            WHERE machine = $machine AND hash(app, {_comparable_args(catalogue)}, ranks, threads) % $slices = $slice
        ), counted AS (
            SELECT chosen.*, counter, unit, value_mean_over_ranks, running_ratio
            FROM raw_profiles__counters JOIN chosen USING (machine, bundle, run)
        ), executed AS (
            SELECT bundle, run, nullif(coalesce({", ".join([*counts, "NULL::DOUBLE"])}), 0) AS instructions
            FROM counted GROUP BY bundle, run
        )
        SELECT machine, {_CONFIGURATION}, counter,
               first(unit ORDER BY unit) AS unit, median(value_mean_over_ranks) AS value,
               min(value_mean_over_ranks) AS value_min, max(value_mean_over_ranks) AS value_max,
               median(value_mean_over_ranks / instructions) AS value_per_instruction,
               min(running_ratio) AS running_ratio, count(*) AS runs_count, {_RUN_NAMES} AS runs
        FROM counted JOIN executed USING (bundle, run)
        GROUP BY machine, {_CONFIGURATION}, counter
        ORDER BY {_CONFIGURATION}, counter
    """


def _features(
    table: Table, features: Sequence[Feature], catalogue: Catalogue, resolved: Sequence[Resolved]
) -> Derivation:
    quantities = ", ".join(
        f"{_quantity(name, resolved, 'value')} AS {name}, "
        f"{_quantity(name, resolved, 'per_instruction')} AS {name}_per_instruction"
        for name in catalogue.quantities
    )
    expressions = ", ".join(f"{feature.expression} AS {feature.name}" for feature in features)
    mask = " + ".join(f"CASE WHEN {f.name} IS NULL THEN {1 << bit} ELSE 0 END" for bit, f in enumerate(features))
    used = {name: [f.text() for f in resolved if f.quantity == name] for name in catalogue.quantities}
    formulas = json.dumps({name: texts for name, texts in used.items() if texts}, sort_keys=True)
    query = f"""
        WITH configuration AS (
            SELECT machine, app, {_comparable_args(catalogue)} AS args, ranks, threads, max(nodes) AS nodes,
                   max(gpus) AS gpus, {_time("median")} AS wall_seconds, {_time("min")} AS wall_seconds_min,
                   {_time("max")} AS wall_seconds_max, count(*) AS runs_count, {_RUN_NAMES} AS runs,
                   bool_or(is_simulated) AS is_simulated
            FROM {CURRENT_RUNS} WHERE machine = $machine GROUP BY machine, app, 3, ranks, threads
        ), counted AS (
            SELECT {_CONFIGURATION}, map(list(counter), list(value)) AS value,
                   map(list(counter), list(value_per_instruction)) AS per_instruction
            FROM {MERGED_COUNTERS.name} WHERE machine = $machine GROUP BY {_CONFIGURATION}
        ), quantity AS (
            SELECT configuration.*, {quantities} FROM configuration LEFT JOIN counted USING ({_CONFIGURATION})
        ), feature AS (
            SELECT machine, {_CONFIGURATION}, nodes, gpus, wall_seconds, wall_seconds_min, wall_seconds_max, runs_count,
                   runs, is_simulated, {expressions} FROM quantity
        )
        SELECT *, {mask} AS missing_mask, {_literal(formulas)} AS formulas FROM feature ORDER BY {_CONFIGURATION}
    """
    return Derivation(table.name, query, table)


def _time(aggregate: str) -> str:
    """SQL of run times: those of the default environment where it has any."""
    return f"coalesce({aggregate}(wall_seconds) FILTER (is_default), {aggregate}(wall_seconds))"


def _environments(named: str | None) -> str:
    """SQL of what a machine's runs were made with, and which of it is the default of each application."""
    if named == UNKNOWN:
        is_named = f"environment = '{UNKNOWN}'"
    elif named is None:
        is_named = "false"
    else:
        wanted = ", ".join(_literal(part) for part in parts_of(named))
        is_named = f"(list_has_all(parts, [{wanted}]) OR environment_digest = {_literal(named)})"
    known = f"environment <> '{UNKNOWN}'"
    return f"""
        WITH made AS (
            SELECT app, environment, substr(sha256(environment), 1, {DIGEST_CHARACTERS}) AS environment_digest,
                   CASE WHEN {known} THEN string_split(environment, '; ') ELSE [] END AS parts,
                   count(DISTINCT run) AS runs_count, count(DISTINCT configuration) AS configurations_count,
                   max(collected_at) AS newest_at, avg(ln(seconds)) AS log_seconds
            FROM {TIMED_RUNS} WHERE machine = $machine GROUP BY app, environment
        ), ranked AS (
            SELECT *, {is_named} AS is_named, {known} AS is_known, 2 * configurations_count
                   >= max(configurations_count) FILTER ({known}) OVER (PARTITION BY app) AS is_large
            FROM made
        ), chosen AS (
            SELECT app, environment AS default_environment, parts AS default_parts FROM ranked
            QUALIFY row_number() OVER (
                PARTITION BY app
                ORDER BY is_named DESC, is_known DESC, is_large DESC, newest_at DESC, log_seconds, environment
            ) = 1
        )
        SELECT $machine AS machine, app, environment, environment_digest, runs_count, configurations_count, newest_at,
               is_named, environment = default_environment AS is_default,
               list_has_all(default_parts, parts) AS is_counted
        FROM ranked JOIN chosen USING (app) ORDER BY app, environment
    """


def _quantity(name: str, resolved: Sequence[Resolved], values: str) -> str:
    """SQL of a quantity over a map of counter values: the first formula whose counters were all measured."""
    sums = [
        " + ".join(f"{factor!r} * {_any_of(names, values)}" for names, factor in formula.terms)
        for formula in resolved
        if formula.quantity == name
    ]
    return f"coalesce({', '.join([*sums, 'NULL::DOUBLE'])})"


def _any_of(names: Sequence[str], values: str) -> str:
    """SQL of the value of a counter that tools spell differently."""
    spelled = [f"{values}[{_literal(name)}]" for name in names]
    return spelled[0] if len(spelled) == 1 else f"coalesce({', '.join(spelled)})"


def _wide(catalogue: Catalogue, counters: Sequence[str]) -> str:
    """SQL of a table with a column for each counter; the pivot takes time and memory in proportion to its cells."""
    names = {f"counter_{number}": counter for number, counter in enumerate(sorted(counters))}
    columns = "".join(f", {short} AS {_identifier(name)}" for short, name in names.items())
    given = f"""
        SELECT app, {_comparable_args(catalogue)} AS args, ranks, threads, median(target_value) AS target_value,
               first(labels ORDER BY bundle, run) AS labels
        FROM {CURRENT_RUNS} WHERE machine = $machine GROUP BY app, 2, ranks, threads
    """
    pivoted = f"""
        LEFT JOIN (
            PIVOT (SELECT {_CONFIGURATION}, counter, value FROM {MERGED_COUNTERS.name} WHERE machine = $machine)
            ON counter IN ({", ".join(f"{_literal(name)} AS {short}" for short, name in names.items())})
            USING first(value) GROUP BY {_CONFIGURATION}
        ) USING ({_CONFIGURATION})
    """
    return f"""
        SELECT {_CONFIGURATION}, features.wall_seconds, target_value, labels{columns}
        FROM {FEATURES.name} AS features JOIN ({given}) USING ({_CONFIGURATION}) {pivoted if names else ""}
        WHERE features.machine = $machine ORDER BY {_CONFIGURATION}
    """


def _comparable_args(catalogue: Catalogue) -> str:
    """SQL of arguments without those that select the back end, blanks folded."""
    args = _folded("args")
    # Twice: of two neighbours the first takes the blank between them.
    for pattern in (*catalogue.backend_arguments, *catalogue.backend_arguments):
        args = f"regexp_replace({args}, {_literal(pattern)}, ' ', 'g')"
    return f"trim({_folded(args)})"


def _folded(text: str) -> str:
    return f"regexp_replace({text}, '\\s+', ' ', 'g')"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


_UNMATCHED = f"""
    WITH other AS (SELECT DISTINCT machine AS other_machine FROM {FEATURES.name}),
    wanted AS (
        SELECT machine, other_machine, {_CONFIGURATION}, wall_seconds FROM {FEATURES.name} CROSS JOIN other
        WHERE machine <> other_machine AND $machine IN (machine, other_machine)
    ),
    there AS (SELECT machine AS other_machine, {_CONFIGURATION}, wall_seconds AS their_seconds FROM {FEATURES.name}),
    arguments AS (SELECT DISTINCT other_machine, app, args, true AS has_arguments FROM there),
    apps AS (SELECT DISTINCT other_machine, app, true AS has_app FROM there),
    reasoned AS (
        SELECT machine, other_machine, {_CONFIGURATION}, CASE
            WHEN is_there AND wall_seconds IS NULL THEN 'its own run time is not known'
            WHEN is_there AND their_seconds IS NULL THEN 'the run time there is not known'
            WHEN is_there THEN NULL
            WHEN has_arguments THEN 'run there with other ranks or threads only'
            WHEN has_app THEN 'run there with other arguments only'
            ELSE 'application not run there' END AS reason
        FROM wanted
        LEFT JOIN (SELECT *, true AS is_there FROM there) USING (other_machine, {_CONFIGURATION})
        LEFT JOIN arguments USING (other_machine, app, args)
        LEFT JOIN apps USING (other_machine, app)
    )
    SELECT * FROM reasoned WHERE reason IS NOT NULL ORDER BY ALL
"""
