"""Pictures of machines and runs in few dimensions. Every function writes a PNG and returns the drawn figure."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from perf_assets.reports.names import EMBEDDINGS
from perf_assets.reports.style import DPI, Target, colours, plain, written

_OFFSETS = [
    (radius * x, radius * y)
    for radius in (6, 14, 24, 36)
    for x, y in ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, 1), (-1, -1), (0, 1), (0, -1))
]
"""Offsets in points, where a label may stand beside its point; nearer ones first."""


def embedding_scatter(rows: pd.DataFrame, colour_by: str, target: Target) -> Figure:
    """Rows of `eval_xamm__embeddings`: a panel per embedding, a point per run, coloured by `machine` or `app`."""
    kinds = [kind for kind in EMBEDDINGS if (rows["embedding"] == kind).any()]
    names = sorted(rows[colour_by].unique())
    colour_of = colours(names)
    figure = Figure(figsize=(2.9 * len(kinds), 3.7), layout="constrained")
    # In the order of the table one machine would hide another.
    mixed = rows.sample(frac=1, random_state=0)
    for axes, kind in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        here = mixed[mixed["embedding"] == kind]
        axes.scatter(here["x"], here["y"], 5, [colour_of[name] for name in here[colour_by]], linewidths=0, alpha=0.75)
        axes.set_title(EMBEDDINGS[kind], size=10)
        axes.set_xticks([])
        axes.set_yticks([])
    handles = [Line2D([], [], marker="o", linestyle="", color=colour_of[name], label=name) for name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(names), 8), frameon=False, fontsize=8)
    return written(figure, target)


def amm_heat_map(vectors: pd.DataFrame, target: Target, own: Sequence[str] = ()) -> Figure:
    """Machines x components; similar machines stand together, and those in `own` have bold names."""
    ordered = vectors.loc[_similar_together(vectors)]
    height, width = ordered.shape
    figure = Figure(figsize=(0.52 * width + 3.0, 0.3 * height + 1.0), layout="constrained")
    axes = figure.subplots()
    values = ordered.to_numpy(float)
    image = axes.imshow(values, aspect="auto", cmap="viridis")
    middle = (values.min() + values.max()) / 2
    for (row, column), value in np.ndenumerate(values):
        colour = "black" if value > middle else "white"
        axes.text(column, row, f"{value:.2g}", ha="center", va="center", size=6, color=colour)
    axes.set_yticks(range(height), [str(name) for name in ordered.index], size=8)
    axes.set_xticks(range(width), [str(name) for name in ordered.columns], size=8)
    for label in axes.get_yticklabels():
        label.set_fontweight("bold" if label.get_text() in own else "normal")
    axes.set_xlabel("component of the AMM")
    figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02)
    return written(figure, target)


def machine_map(vectors: pd.DataFrame, target: Target, groups: "pd.Series[str] | None" = None) -> Figure:
    """Machines x components in two principal components; `groups` (by machine) gives colours."""
    places, shares = principal_components(vectors)
    kind = _groups(vectors, groups)
    names = sorted(kind.unique())
    colour_of = colours(names)
    figure = Figure(figsize=(7.6, 5.4), layout="constrained", dpi=DPI)
    axes = figure.subplots()
    for name in names:
        chosen = (kind == name).to_numpy()
        axes.scatter(places[chosen, 0], places[chosen, 1], 36, color=colour_of[name], label=name or None, zorder=3)
    axes.margins(0.14)
    axes.set_xlabel(f"first principal component ({shares[0]:.0%} of the variance)")
    axes.set_ylabel(f"second principal component ({shares[1]:.0%})")
    plain(axes)
    if groups is not None:
        axes.legend(frameon=False)
    _label(axes, places, [str(name) for name in vectors.index])
    return written(figure, target)


def machine_places(vectors: pd.DataFrame, groups: "pd.Series[str] | None" = None) -> pd.DataFrame:
    """Content of the map: machine, group, and its place by both components."""
    places, _ = principal_components(vectors)
    return pd.DataFrame(
        {
            "machine": vectors.index,
            "group": _groups(vectors, groups).to_numpy(),
            "first_component": places[:, 0],
            "second_component": places[:, 1],
        }
    )


def principal_components(vectors: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Rows x 2, and the share of variance of both."""
    centred = vectors.to_numpy(float) - vectors.to_numpy(float).mean(axis=0)
    padded = np.hstack([centred, np.zeros((len(centred), max(0, 2 - centred.shape[1])))])
    left, values, _ = np.linalg.svd(padded, full_matrices=False)
    places = np.zeros((len(padded), 2))
    places[:, : min(2, len(values))] = (left * values)[:, :2]
    shares = np.zeros(2)
    shares[: min(2, len(values))] = (values**2 / max(float((values**2).sum()), 1e-300))[:2]
    return places, shares


def _groups(vectors: pd.DataFrame, groups: "pd.Series[str] | None") -> "pd.Series[str]":
    return pd.Series("", vectors.index) if groups is None else groups.reindex(vectors.index).fillna("")


def _similar_together(vectors: pd.DataFrame) -> list[object]:
    """Index labels in a chain: next comes the machine nearest to the last one."""
    values = vectors.to_numpy(float)
    left = list(range(len(values)))
    chain = [left.pop(int(np.argmin(values.sum(axis=1))))]
    while left:
        distances = np.linalg.norm(values[left] - values[chain[-1]], axis=1)
        chain.append(left.pop(int(np.argmin(distances))))
    return [vectors.index[position] for position in chain]


def _label(axes: Axes, places: np.ndarray, names: list[str]) -> None:
    """Names beside the points, each where it covers least of what is already there."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    points = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in axes.transData.transform(places)]
    taken = list(points)
    for place, name in zip(places, names, strict=True):
        tried: list[tuple[int, Annotation, Bbox]] = []
        for x, y in _OFFSETS:
            text = axes.annotate(
                name,
                (float(place[0]), float(place[1])),
                (x, y),
                textcoords="offset points",
                size=8,
                ha="left" if x > 0 else "right" if x < 0 else "center",
                va="bottom" if y > 0 else "top" if y < 0 else "center",
                arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "#888888"}
                if max(abs(x), abs(y)) > 7
                else None,
            )
            text.get_window_extent()  # puts it into its place
            # Of the text alone, without the line to its point.
            box = Text.get_window_extent(text).padded(1)
            tried.append((sum(box.overlaps(other) for other in taken), text, box))
            if not tried[-1][0]:
                break
        best = min(tried, key=lambda attempt: attempt[0])
        for attempt in tried:
            if attempt is not best:
                attempt[1].remove()
        taken.append(best[2])
