"""Pictures inside of pages."""

import base64
import io
from collections.abc import Callable
from typing import BinaryIO


def data_uri(draw: Callable[[BinaryIO], object]) -> str:
    """What a function writes as PNG, as an address that holds the picture itself."""
    buffer = io.BytesIO()
    draw(buffer)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
