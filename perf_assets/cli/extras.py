"""Extras of the installation: which one brings a package that a command needs and that is not there."""

_EXTRAS = {
    "models": (
        "duckdb",
        "mlflow",
        "ot",
        "pytorch_tabnet",
        "scipy",
        "sklearn",
        "sqlalchemy",
        "threadpoolctl",
        "torch",
        "xgboost",
    ),
    "reports": ("jinja2", "matplotlib", "tabulate"),
    "schedule": ("numba",),
    "serve": ("fastapi", "httptools", "uvicorn", "uvloop"),
    "platform": ("dagster", "dagster_webserver"),
    "postgres": ("dagster_postgres", "psycopg2"),
    "cluster": ("dagster_dask", "dask", "dask_jobqueue", "distributed"),
}
"""Packages by the name that is imported; `pyproject.toml` has the distributions."""


def missing_extra(error: BaseException | None) -> str | None:
    """One line where a failure comes of a package that an extra brings; None for any other."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            package = (error.name or "").partition(".")[0]
            for extra, packages in _EXTRAS.items():
                if package in packages:
                    return f"this needs {package}, which is not installed: pip install 'perf_assets[{extra}]'"
        error = error.__cause__ or error.__context__
    return None
