"""The page at /docs: what the service answers, with forms to try it. Our own, because it must work offline."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from html import escape
from typing import Any

from perf_assets.serving.http.examples import ShownExamples

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .75rem; border: 1px solid; border-radius: .3rem }
textarea { box-sizing: border-box; width: 100%; font: .85rem/1.4 ui-monospace, monospace; padding: .75rem }
input, button { font: inherit; padding: .2rem .6rem }
table { border-collapse: collapse; margin: .5rem 0 }
td, th { text-align: left; padding: .1rem .8rem .1rem 0; vertical-align: top }
details { margin: .5rem 0 }
section { border-top: 1px solid; margin-top: 2rem }
"""
_SCRIPT = """
for (const form of document.forms) form.addEventListener("submit", async event => {
  event.preventDefault();
  const shown = form.querySelector("pre"), body = form.querySelector("textarea"), name = form.querySelector("input");
  shown.hidden = false;
  shown.textContent = "asked ...";
  try {
    const path = form.dataset.path.replace(/\\{.*\\}/, name ? encodeURIComponent(name.value) : "");
    const answer = await fetch(path.slice(1), body
      ? {method: "POST", headers: {"Content-Type": "application/json"}, body: body.value} : {});
    shown.textContent = answer.status + "\\n" + JSON.stringify(await answer.json(), null, 1);
  } catch (problem) { shown.textContent = String(problem); }
});
"""
_MOST_DEPTH = 3
Schema = dict[str, Any]


def page_of(description: Schema, examples: ShownExamples, address: str) -> str:
    """HTML of an OpenAPI description; `address` is that of the service as the reader sees it."""
    info = description["info"]
    parts = [
        _operation(path, method, operation, description["components"]["schemas"], examples, address)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    origin = (
        "The examples are of machines, runs and models that this service has."
        if examples.are_real
        else "No champion is in use yet: the examples are made up."
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f"<style>{_STYLE}</style></head><body><main><h1>{escape(info['title'])}</h1>"
        f"<p>{escape(info['description'])} {origin}</p>"
        "<p>Errors are one line each: <code>{&quot;error&quot;: &quot;…&quot;}"
        '</code>. For programs: <a href="openapi.json">openapi.json</a>.</p>'
        f"{''.join(parts)}</main><script>{_SCRIPT}</script></body></html>"
    )


def _operation(
    path: str, method: str, operation: Schema, schemas: Schema, examples: ShownExamples, address: str
) -> str:
    """One path: what it is for, a form, the line for a shell, fields of question and answer, an answer."""
    question = examples.questions.get(path)
    command = f"curl {address}{path.format_map(examples.names)}"
    if question is not None:
        command += f" -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(question))}"
    answers = "".join(
        f'<tr><th scope="row">{escape(status)}</th><td>{escape(answer["description"])}</td></tr>'
        for status, answer in sorted(operation["responses"].items())
    )
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    answered = operation["responses"]["200"]["content"]["application/json"]["schema"]
    folded = [
        _folded("Fields of the question", _fields(asked, schemas)) if asked else "",
        _folded("Fields of the answer", _fields(answered, schemas)),
        _folded("Status", f"<table>{answers}</table>"),
    ]
    example = ""
    if path == "/predict" and examples.are_real:
        answer = json.dumps({"predictions": [asdict(one) for one in examples.answers]}, indent=1)
        example = f"<p>The answer to this question:</p><pre>{escape(answer)}</pre>"
    return (
        f"<section><h2>{escape(method.upper())} <code>{escape(path)}</code></h2><p>{escape(operation['summary'])}. "
        f"{escape(operation.get('description', ''))}</p>{_form(path, question, examples.names)}{example}"
        f"<p>From a shell:</p><pre>{escape(command)}</pre>{''.join(folded)}</section>"
    )


def _form(path: str, question: Schema | None, names: Mapping[str, str]) -> str:
    """A form that asks the service that the page is from."""
    box = ""
    if question is not None:
        text = json.dumps(question, indent=1)
        rows = min(text.count("\n") + 1, 24)
        box = f'<textarea rows="{rows}" spellcheck="false" aria-label="Question as JSON">{escape(text)}</textarea>'
    name = "".join(
        f'<p><label>{escape(what.capitalize())} <input value="{escape(value)}"></label></p>'
        for what, value in names.items()
        if f"{{{what}}}" in path
    )
    lands = " (this lands a run)" if path == "/observe" else ""
    return (
        f'<form data-path="{escape(path)}">{name}{box}<p><button>Ask{lands}</button></p>'
        '<pre hidden aria-live="polite"></pre></form>'
    )


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _fields(schema: Schema, schemas: Schema) -> str:
    """Table of all fields of a schema, those of nested objects with their path."""
    rows = "".join(
        f'<tr><th scope="row"><code>{escape(name)}</code></th><td>{escape(kind)}</td><td>{escape(meaning)}</td></tr>'
        for name, kind, meaning in _described(schema, schemas, "", _MOST_DEPTH)
    )
    return f"<table>{rows}</table>"


def _described(schema: Schema, schemas: Schema, prefix: str, depth: int) -> Iterator[tuple[str, str, str]]:
    """Path, type and meaning of each field."""
    schema = _resolved(schema, schemas)
    for name, field in schema.get("properties", {}).items():
        needed = "" if name in schema.get("required", ()) else ", optional"
        meaning = field.get("description", "")
        yield f"{prefix}{name}", f"{_kind(field, schemas)}{needed}", " ".join(meaning.split())
        for inner, ending in ((field, "."), (field.get("items", {}), "[].")):
            if depth and "properties" in _resolved(inner, schemas):
                yield from _described(inner, schemas, f"{prefix}{name}{ending}", depth - 1)


def _kind(field: Schema, schemas: Schema) -> str:
    """Type of a field as JSON has it."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(one, schemas) for one in field["anyOf"]))
    kind = str(_resolved(field, schemas).get("type", "any"))
    return f"array of {_kind(field['items'], schemas)}s" if kind == "array" and field.get("items") else kind


def _resolved(schema: Schema, schemas: Schema) -> Schema:
    """The schema itself, or what it refers to; of alternatives the one that has fields."""
    if "$ref" in schema:
        referred: Schema = schemas[schema["$ref"].rsplit("/", 1)[-1]]
        return referred
    refers = [one for one in schema.get("anyOf", ()) if "$ref" in one]
    return _resolved(refers[0], schemas) if refers else schema
