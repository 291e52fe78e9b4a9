"""Comparisons as pages show them."""

from perf_assets.core.comparison import ComparedApplication, ComparedMachine, Comparison, Estimate, Evidence, ranked

TIMES = {"h100": Estimate(0.34, 0.31, 0.38), "tioga": Estimate(0.41, 0.35, 0.48), "new$box$": Estimate(0.7, 0.44, 1.1)}
EVIDENCE = {"h100": Evidence(540, 4, 0), "tioga": Evidence(12, 0, 0), "new$box$": Evidence(0, 0, 12)}
APPS = {"Kripke": 0.75, "<b>$x$": 0.25}


def comparison(*, has_costs: bool = True) -> Comparison:
    """Three machines, one of them known by its benchmark alone; two applications."""
    times = ranked(TIMES)
    hours, energy, prices = (
        ranked({name: one.times(factor * place) for place, (name, one) in enumerate(TIMES.items(), 1)})
        for factor in (100, 40, 3)
    )
    by = prices if has_costs else times
    return Comparison(
        "quartz",
        "price" if has_costs else "relative_time",
        tuple(
            ComparedMachine(
                by[name].place,
                name,
                times[name],
                hours[name],
                energy[name] if has_costs else None,
                prices[name] if has_costs else None,
                EVIDENCE[name],
                name == "tioga",
                ("severity 0.90: <i>hard</i>",) if name == "tioga" else (),
            )
            for name in TIMES
        ),
        tuple(
            ComparedApplication(name, app, weight, EVIDENCE[name], one.times(9), one, one.times(100 * weight))
            for name, one in TIMES.items()
            for app, weight in APPS.items()
        ),
        ("2 of 12 configurations are left out: newbox: nobody knows",),
    )
