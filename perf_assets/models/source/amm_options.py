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
from perf_assets.models.amm.encoder import ALL_OPTIONS, AmmEncoder, fit_encoder
from perf_assets.models.source.described_trees import DescribedTrees
from perf_assets.models.source.tree_features import Counters, DescribedAmm, FeaturePart

_EXAMPLES = 4000
"""Enough to tell options apart, a quarter of what a model is trained on."""
_WITHOUT = "without"


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
        (folder / _WITHOUT).mkdir(parents=True, exist_ok=True)
        self.encoder.save(folder / "encoder.npz")
        self.tried.to_csv(folder / "tried.csv", index=False)
        for machine, encoder in self.without.items():
            encoder.save(folder / _WITHOUT / f"{machine}.npz")

    @classmethod
    def load(cls, folder: Path) -> "TrainedEncoder":
        """Read what `save` wrote."""
        without = {file.stem: AmmEncoder.load(file) for file in sorted((folder / _WITHOUT).glob("*.npz"))}
        return cls(AmmEncoder.load(folder / "encoder.npz"), without, pd.read_csv(folder / "tried.csv"))


def train_encoder(samples: PairedSamples, seed: int, progress: Callable[[str], None]) -> TrainedEncoder:
    """Train on the benchmark of all known machines, with the options that are best for machines it did not see.

    With fewer than three machines that ran applications nothing can be held out: the paper's options are taken.
    """
    try:
        folds = list(leave_one_machine_out(samples))
    except BadInputError as error:
        progress(f"AMM options are the paper's: {error}")
        tried = pd.DataFrame(columns=["weighting", "normalize", "log_rmse"])
        return TrainedEncoder(fit_encoder(samples, seed=seed), {}, tried)
    without, errors = {}, np.empty((len(folds), len(ALL_OPTIONS)))
    for position, fold in enumerate(folds):
        progress(f"AMM options without {fold.held_out}: {position + 1} of {len(folds)}")
        without[fold.held_out] = fit_encoder(fold.train, seed=seed)
        errors[position] = _errors(samples, fold, without[fold.held_out], seed)
    mean = errors.mean(axis=0)
    tried = pd.DataFrame(
        [
            {"weighting": options.weighting, "normalize": options.normalize, "log_rmse": float(error)}
            for options, error in zip(ALL_OPTIONS, mean, strict=True)
        ]
    ).sort_values("log_rmse", kind="stable", ignore_index=True)
    return TrainedEncoder(fit_encoder(samples, ALL_OPTIONS[int(np.argmin(mean))], seed=seed), without, tried)


def _errors(samples: PairedSamples, fold: Fold, encoder: AmmEncoder, seed: int) -> Floats:
    """Log error of each option on the machine that is held out."""
    described = encoder.every_option(samples)
    seen, train, test = replace(samples, amms=described), replace(fold.train, amms=described), fold.some_of_test()
    counters, errors = Counters(fit_scaler(train)), []
    for options in ALL_OPTIONS:
        parts: dict[str, FeaturePart] = {"counters": counters, "published_amm": DescribedAmm(options)}
        model = DescribedTrees.fit(train, parts, "xgboost", seed, _EXAMPLES)
        log_errors = model.predict(seen, test) - samples.log_relative_time(test)
        errors.append(float(np.sqrt(np.mean(log_errors**2))))
    return np.array(errors)
