"""A figure of a page: the picture, words for those who cannot see it, and the numbers behind it as CSV."""

import base64
import re
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from perf_assets.core.text import csv_of
from perf_assets.reports.inline import Draw, as_data_uri, picture

_NOT_IN_A_FILE_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Chart:
    """A picture and what a page needs around it."""

    name: str
    """Of the file of its numbers, without ending."""
    title: str
    words: str
    """What it shows, for those who cannot see it."""
    png: bytes
    numbers: pd.DataFrame
    """What is drawn; ratios, where the picture shows percentages."""

    @cached_property
    def picture_address(self) -> str:
        """An address that holds the picture itself."""
        return as_data_uri(self.png)

    @cached_property
    def numbers_address(self) -> str:
        """An address that holds the numbers themselves."""
        return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(csv_of(self.numbers).encode()).decode()}"

    @property
    def file(self) -> str:
        """Name under which a browser stores the numbers."""
        return f"{_NOT_IN_A_FILE_NAME.sub('-', self.name)}.csv"


def chart(name: str, title: str, words: str, draw: Draw, numbers: pd.DataFrame) -> Chart:
    """A figure from a function that draws it."""
    return Chart(name, title, words, picture(draw), numbers)
