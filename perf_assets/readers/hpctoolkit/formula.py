"""Formulas of HPCToolkit metrics, as in `sqrt(($6 / $7) - pow($5 / $7, 2))`, evaluated without `eval`."""

import math
import re
from collections.abc import Callable, Mapping

_MAX_TOKENS = 1000
_MAX_DEPTH = 50
_TOKEN = re.compile(r"\s*(?:(\$\d+)|(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|([A-Za-z_]+)|([-+*/(),]))")
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "pow": math.pow,
    "sum": lambda *terms: math.fsum(terms),
    "min": lambda *terms: min(terms),
    "max": lambda *terms: max(terms),
}


class FormulaError(ValueError):
    """A formula that is not understood, or that has no value."""


def evaluate(formula: str, values: Mapping[int, float]) -> float:
    """Value of a formula in which `$n` is the value of metric n; a metric without a value counts as 0."""
    parser = _Parser(_tokens(formula), values)
    try:
        result = parser.expression(0)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise FormulaError(f"formula {formula!r} has no value: {error}") from None
    if parser.peek() is not None:
        raise FormulaError(f"formula {formula!r} does not end at {parser.peek()!r}")
    return result


def _tokens(formula: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    text = formula.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(tokens) >= _MAX_TOKENS:
            raise FormulaError(f"formula {formula[:100]!r} is not understood at {text[position : position + 20]!r}")
        tokens.append(match.group(match.lastindex or 0))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent over one formula; depth is limited."""

    def __init__(self, tokens: list[str], values: Mapping[int, float]) -> None:
        self._tokens = tokens
        self._next = 0
        self._values = values

    def peek(self) -> str | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, expected: str | None = None) -> str:
        token = self.peek()
        if token is None or (expected is not None and token != expected):
            raise FormulaError(f"expected {expected or 'a value'}, found {token or 'the end'}")
        self._next += 1
        return token

    def expression(self, depth: int) -> float:
        result = self._product(depth)
        while self.peek() in ("+", "-"):
            if self._take() == "+":
                result += self._product(depth)
            else:
                result -= self._product(depth)
        return result

    def _product(self, depth: int) -> float:
        result = self._operand(depth)
        while self.peek() in ("*", "/"):
            if self._take() == "*":
                result *= self._operand(depth)
            else:
                result /= self._operand(depth)
        return result

    def _operand(self, depth: int) -> float:
        if depth > _MAX_DEPTH:
            raise FormulaError("too deeply nested")
        token = self._take()
        if token == "-":
            return -self._operand(depth + 1)
        if token == "(":
            result = self.expression(depth + 1)
            self._take(")")
            return result
        if token[0] == "$":
            return self._values.get(int(token[1:]), 0.0)
        if token in _FUNCTIONS:
            return self._call(token, depth)
        return float(token)

    def _call(self, name: str, depth: int) -> float:
        self._take("(")
        arguments = [self.expression(depth + 1)]
        while self.peek() == ",":
            self._take()
            arguments.append(self.expression(depth + 1))
        self._take(")")
        return _FUNCTIONS[name](*arguments)
