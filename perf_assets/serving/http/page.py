"""The page at /docs: what the service answers, with examples to copy. Our own, because it must work offline."""

import json
from html import escape
from typing import Any

_COUNTERS = {"PAPI_TOT_INS": 3.1e10, "PAPI_LD_INS": 9.3e9, "PAPI_SR_INS": 2.8e9, "PAPI_BR_INS": 6.6e9}
_RUN: dict[str, Any] = {"app": "Kripke", "args": "--zones 32,32,32 --groups 32", "ranks": 8, "threads": 4}

QUESTION: dict[str, Any] = {
    "target": "dane",
    "runs": [{"machine": "quartz", **_RUN, "wall_seconds": 4.86, "counters": _COUNTERS}],
}
TABLE_QUESTION: dict[str, Any] = {"rows": [{"flops": 3.1e9, "ranks": 8, "solver": "cg"}]}
JOB_QUESTION: dict[str, Any] = {"app": "Kripke", "args": "--zones 32,32,32", "nodes": 4, "machines": ["dane", "tioga"]}
OBSERVATION: dict[str, Any] = {
    "machine": "dane",
    **_RUN,
    "gpus": 0,
    "wall_seconds": 3.4,
    "reference": {"machine": "quartz", **_RUN, "wall_seconds": 4.86, "counters": _COUNTERS},
}


_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre { overflow: auto; padding: .75rem; border: 1px solid; border-radius: .3rem }
td, th { text-align: left; padding: .1rem .8rem .1rem 0; vertical-align: top }
"""


def page_of(description: dict[str, Any]) -> str:
    """HTML of an OpenAPI description."""
    info = description["info"]
    parts = [
        _operation(path, method, operation, description)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f"<style>{_STYLE}</style></head><body><main><h1>{escape(info['title'])}</h1>"
        f"<p>{escape(info['description'])}</p><p>Errors are one line each: <code>{{&quot;error&quot;: &quot;…&quot;}}"
        '</code>. For programs: <a href="openapi.json">openapi.json</a>.</p>'
        f"{''.join(parts)}</main></body></html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any], description: dict[str, Any]) -> str:
    example = _example(operation, description)
    command = f"curl http://127.0.0.1:8000{path}"
    if example is not None:
        command += f" -H 'Content-Type: application/json' -d '{json.dumps(example)}'"
    answers = "".join(
        f'<tr><th scope="row">{escape(status)}</th><td>{escape(answer["description"])}</td></tr>'
        for status, answer in sorted(operation["responses"].items())
    )
    shown = "" if example is None else f"<pre>{escape(json.dumps(example, indent=1))}</pre>"
    return (
        f"<section><h2>{escape(method.upper())} <code>{escape(path)}</code></h2><p>{escape(operation['summary'])}. "
        f"{escape(operation.get('description', ''))}</p>{shown}<pre>{escape(command)}</pre>"
        f"<table>{answers}</table></section>"
    )


def _example(operation: dict[str, Any], description: dict[str, Any]) -> Any:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    if "example" in content:
        return content["example"]
    name = content["schema"]["$ref"].rsplit("/", 1)[-1]
    return description["components"]["schemas"][name]["examples"][0]
