"""Pictures as bytes, to be stored, and inside of pages."""

import base64
import io
from collections.abc import Callable
from typing import BinaryIO

Draw = Callable[[BinaryIO], object]
"""Writes a PNG."""


def picture(draw: Draw) -> bytes:
    """What a function writes: drawn once, however often it is stored or shown."""
    buffer = io.BytesIO()
    draw(buffer)
    return buffer.getvalue()


def as_data_uri(png: bytes) -> str:
    """An address that holds the picture itself."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def data_uri(draw: Draw) -> str:
    """The same of a picture that is shown and not stored."""
    return as_data_uri(picture(draw))
