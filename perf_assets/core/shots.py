"""Number of rows of a target that a model may learn from, as people write it: `50` rows, or `5%` of them."""

from dataclasses import dataclass

from perf_assets.core.errors import BadInputError

_LEAST_OF_SHARE = 8
"""Least rows of a share: one percent of a small table is next to nothing."""


@dataclass(frozen=True)
class Shots:
    """A number of rows, or a share of them in percent."""

    value: float
    is_share: bool

    @classmethod
    def parse(cls, text: str) -> "Shots":
        """Parse `N` or `P%`."""
        is_share = text.endswith("%")
        try:
            value = float(text.removesuffix("%"))
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf") or (is_share and not 0 < value <= 100) or (not is_share and value % 1):
            raise BadInputError(f"--shots {text!r}: give a number of rows or a share such as 5%")
        return cls(value, is_share)

    def count(self, rows: int) -> int:
        """Rows to learn from, of a table with `rows` rows; of a share at least eight."""
        return max(_LEAST_OF_SHARE, round(rows * self.value / 100)) if self.is_share else int(self.value)
