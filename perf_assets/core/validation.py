"""What schemas refuse, and one line for it."""

from pydantic import ValidationError


def first_problem(error: ValidationError) -> str:
    """The first problem of a validation, with the field it is in."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def check_text(text: str) -> str:
    """Return `text` if it can be printed on one line; raise otherwise."""
    if not text.isprintable():
        raise ValueError(f"{text[:40]!a} holds characters that cannot be printed: leave them out")
    return text
