"""Training of the AMM encoder: the options of Algorithm 1 are chosen on machines that are held out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import Fold, leave_one_machine_out
from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.features.standardise import fit_scaler
from perf_assets.infra.fanout import side_by_side
from perf_assets.models.amm.encoder import ALL_OPTIONS, AmmEncoder, fit_encoder
from perf_assets.models.common import archive
from perf_assets.models.source.described_trees import DescribedTrees, TreeSettings
from perf_assets.models.source.tree_features import Counters, DescribedAmm, FeaturePart

_MOST_EXAMPLES = 4000
"""Examples to compare options by: a quarter of those that a model is trained on."""
ENCODER_FILE, _WITHOUT = "encoder.npz", "without"
_COLUMNS = ["weighting", "normalize", "log_rmse"]


@dataclass(frozen=True)
class TrainedEncoder:
    """The encoder that describes machines, and those that did not see one of them."""

    encoder: AmmEncoder
    without: Mapping[str, AmmEncoder]
    """Encoders that have not seen a machine, by physical machine, for scores on machines that are held out."""
    tried: pd.DataFrame
    """weighting, normalize, log_rmse on machines that were held out; empty where none could be."""

    def vectors_without(self, samples: PairedSamples) -> dict[str, dict[str, Floats]]:
        """AMMs of all machines by option, by the machine that the encoder has not seen."""
        return {machine: encoder.every_option(samples) for machine, encoder in self.without.items()}

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        archive.write(folder / ENCODER_FILE, self.encoder)
        self.tried.to_csv(folder / "tried.csv", index=False)
        for machine, encoder in self.without.items():
            archive.write(folder / _WITHOUT / f"{machine}.npz", encoder)

    @classmethod
    def load(cls, folder: Path) -> "TrainedEncoder":
        """Read what `save` wrote."""
        without = {file.stem: archive.read(file, AmmEncoder) for file in sorted((folder / _WITHOUT).glob("*.npz"))}
        encoder = archive.read(folder / ENCODER_FILE, AmmEncoder)
        return cls(encoder, without, pd.read_csv(folder / "tried.csv"))


def train_encoder(
    samples: PairedSamples, seed: int, progress: Callable[[str], None], *, chooses_options: bool = True
) -> TrainedEncoder:
    """Train on the benchmark of all known machines, with the options that are best for machines it did not see.

    The paper's options are taken where none are to be chosen, and where fewer than three machines ran applications, of
    which nothing can be held out.
    """
    try:
        folds = list(leave_one_machine_out(samples))
    except BadInputError as error:
        progress(f"AMM options are the paper's: {error}")
        return TrainedEncoder(fit_encoder(samples, seed=seed), {}, pd.DataFrame(columns=_COLUMNS))
    without, errors, everything = {}, {}, None
    # The encoder of all machines is one more piece: options do not matter until vectors are combined.
    places = [None, *range(len(folds))]
    pieces = [_EncoderTask(place, seed, chooses_options) for place in places]
    for piece, (encoder, option_errors) in side_by_side(_fit_fold, samples, pieces):
        if piece.position is None:
            everything = encoder
            continue
        held_out = folds[piece.position].held_out
        without[held_out], errors[piece.position] = encoder, option_errors
        progress(f"AMM encoder without {held_out}: {len(without)} of {len(folds)}")
    assert everything is not None
    in_order = {fold.held_out: without[fold.held_out] for fold in folds}
    if not chooses_options:
        return TrainedEncoder(everything, in_order, pd.DataFrame(columns=_COLUMNS))
    mean = np.mean([errors[position] for position in range(len(folds))], axis=0)
    tried = pd.DataFrame(
        [
            {"weighting": options.weighting, "normalize": options.normalize, "log_rmse": float(error)}
            for options, error in zip(ALL_OPTIONS, mean, strict=True)
        ]
    ).sort_values("log_rmse", kind="stable", ignore_index=True)
    best = ALL_OPTIONS[int(np.argmin(mean))]
    chosen = replace(everything, options=best, fleet_max=everything.largest[best.weighting])
    return TrainedEncoder(chosen, in_order, tried)


@dataclass(frozen=True)
class _EncoderTask:
    """Encoder of all machines but that of one fold, for a worker process; of all machines where position is None."""

    position: int | None
    seed: int
    chooses_options: bool


def _fit_fold(samples: PairedSamples, piece: _EncoderTask) -> tuple[AmmEncoder, Floats]:
    """Fitted encoder, and the log error of each option on the machine that is held out (nothing if none is asked)."""
    if piece.position is None:
        return fit_encoder(samples, seed=piece.seed), np.empty(0)
    fold = list(leave_one_machine_out(samples))[piece.position]
    encoder = fit_encoder(fold.train, seed=piece.seed)
    return encoder, _errors(samples, fold, encoder, piece.seed) if piece.chooses_options else np.empty(0)


def _errors(samples: PairedSamples, fold: Fold, encoder: AmmEncoder, seed: int) -> Floats:
    """Log error of each option on the machine that is held out."""
    described = encoder.every_option(samples)
    seen, train, test = replace(samples, amms=described), replace(fold.train, amms=described), fold.some_of_test()
    counters, errors = Counters(fit_scaler(train)), []
    for options in ALL_OPTIONS:
        parts: dict[str, FeaturePart] = {"counters": counters, "published_amm": DescribedAmm(options)}
        model = DescribedTrees.fit(train, TreeSettings(most_examples=_MOST_EXAMPLES), seed, parts)
        log_errors = model.predict(seen, test) - samples.log_relative_time(test)
        errors.append(float(np.sqrt(np.mean(log_errors**2))))
    return np.array(errors)
