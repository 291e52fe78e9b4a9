"""Which options of Algorithm 1 a fleet's AMMs are made with: chosen on machines that are held out."""

from collections.abc import Callable
from itertools import product
from typing import get_args

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import leave_one_machine_out
from perf_assets.features.samples import PairedSamples
from perf_assets.features.standardise import fit_scaler
from perf_assets.models.amm.encoder import AmmOptions, Normalisation, Weighting
from perf_assets.models.source.described_trees import DescribedTrees
from perf_assets.models.source.tree_features import Counters, Part, fit_published_amm

_EXAMPLES = 4000
"""Enough to tell options apart, a quarter of what a model is trained on."""


def choose_options(
    samples: PairedSamples, seed: int, progress: Callable[[str], None]
) -> tuple[AmmOptions, pd.DataFrame]:
    """The options with the smallest log error on unseen machines, and the errors of all.

    With fewer than three machines that ran applications nothing can be held out: the paper's options are taken.
    """
    every = [AmmOptions(w, normalize=n) for w, n in product(get_args(Weighting), get_args(Normalisation))]
    try:
        folds = list(leave_one_machine_out(samples))
    except BadInputError as error:
        progress(f"AMM options are the paper's: {error}")
        return AmmOptions(), pd.DataFrame(columns=["weighting", "normalize", "log_rmse"])
    errors = np.empty((len(folds), len(every)))
    for position, fold in enumerate(folds):
        progress(f"AMM options without {fold.held_out}: {position + 1} of {len(folds)}")
        train, test = fold.train, fold.some_of_test
        trained, counters = fit_published_amm(train, seed), Counters(fit_scaler(train))
        for column, options in enumerate(every):
            parts: dict[str, Part] = {"counters": counters, "published_amm": trained.with_options(options, train)}
            model = DescribedTrees.fit(train, parts, "xgboost", seed, _EXAMPLES)
            found = model.predict(samples, test) - samples.log_relative_time(test)
            errors[position, column] = np.sqrt(np.mean(found**2))
    mean = errors.mean(axis=0)
    table = pd.DataFrame(
        [
            {"weighting": options.weighting, "normalize": options.normalize, "log_rmse": float(error)}
            for options, error in zip(every, mean, strict=True)
        ]
    )
    return every[int(np.argmin(mean))], table.sort_values("log_rmse", kind="stable", ignore_index=True)
