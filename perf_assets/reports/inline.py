"""Pictures inside of pages."""

import base64
import io
from collections.abc import Callable
from typing import BinaryIO


def picture(draw: Callable[[BinaryIO], object]) -> bytes:
    """What a function writes as PNG."""
    buffer = io.BytesIO()
    draw(buffer)
    return buffer.getvalue()


def as_data_uri(png: bytes) -> str:
    """A picture as an address that holds it itself."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def data_uri(draw: Callable[[BinaryIO], object]) -> str:
    """What a function writes as PNG, as an address that holds the picture itself."""
    return as_data_uri(picture(draw))
