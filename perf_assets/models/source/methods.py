"""Named methods that predict log relative time, put together from parts."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import Unseen
from perf_assets.features.samples import PairedSamples
from perf_assets.models.amm.encoder import AmmOptions
from perf_assets.models.common.contract import PairPredictor
from perf_assets.models.common.regressors import DOWNSTREAM
from perf_assets.models.source import tree_features as inputs
from perf_assets.models.source.anchored_trees import AnchoredSettings, AnchoredTrees
from perf_assets.models.source.attention import AttentionSettings, BenchmarkAttention
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.source.blend import fit_blend
from perf_assets.models.source.described_trees import DescribedTrees, TreeSettings
from perf_assets.models.source.mixture import KernelMixture, MachineMixture, TimesElsewhere
from perf_assets.models.source.plain import BenchmarkMean, PairMedian, Unchanged
from perf_assets.models.source.typical import TypicalTimes

Fitted = TypeVar("Fitted")

_PARTS: dict[str, tuple[str, ...]] = {
    "raw": ("counters",),
    "onehot": ("counters", "one_hot"),
    "spec": ("counters", "specification"),
    "embedding": ("embedding",),
    "embedding_amm": ("embedding", "published_amm"),
    "raw_amm": ("counters", "published_amm"),
    "raw_relative_amm": ("counters", "relative_amm"),
}
_VARIANTS: dict[str, tuple[str, ...]] = {
    "rates": ("rates", "one_hot"),
    **{f"embedding_{kind}": (f"embedding_{kind}",) for kind in inputs.OTHER_EMBEDDINGS},
    **{f"embedding_amm_{option}": ("embedding", f"published_amm_{option}") for option in inputs.OTHER_AMM_OPTIONS},
    **{f"raw_amm_{option}": ("counters", f"published_amm_{option}") for option in inputs.OTHER_AMM_OPTIONS},
}
"""Counters per second with a machine id, which `best` blends where there is no benchmark; and descriptions with other
embeddings and other options of the published AMM, for those who compare them."""
_DESCRIPTIONS = _PARTS | _VARIANTS
_MACHINE_MODELS = ("benchmark_mean", "attention", "bilinear", "mixture", "kernel_mixture", "anchored_xgboost")
_PLAIN: dict[str, type[Unchanged | BenchmarkMean | PairMedian | TypicalTimes]] = {
    "unchanged": Unchanged,
    "benchmark_mean": BenchmarkMean,
    "pair_median": PairMedian,
    "typical": TypicalTimes,
}
"""Answers that need no model."""
_ELSEWHERE: dict[str, type[TimesElsewhere]] = {"mixture": MachineMixture, "kernel_mixture": KernelMixture}
_NEED_BENCHMARK = ("amm", "attention", "bilinear", "mixture", "anchored", "benchmark")
_OTHER_DOWNSTREAM_FOR = ("raw", "embedding_amm")


class MethodFactory:
    """Fits methods, and each thing only once: methods share parts, and folds of folds share training data."""

    def __init__(
        self, seed: int = 0, amm_options: AmmOptions | None = None, attention: AttentionSettings | None = None
    ) -> None:
        self.seed = seed
        self.attention = attention
        self.amm_options = amm_options
        self._fit_part: dict[str, Callable[[PairedSamples, int], inputs.FeaturePart]] = {
            **inputs.FIT,
            "published_amm": partial(inputs.fit_published_amm, options=amm_options),
        }
        self._made: dict[tuple[str, str], object] = {}

    def fit(self, name: str, samples: PairedSamples, unseen: Unseen) -> PairPredictor:
        """Fit a method on what can be seen; `unseen` is what will be new when it is used."""
        check_method(name, samples)
        if name == "best":
            return self._once(f"best for {unseen}", samples, lambda: self._fit_best(samples, unseen))
        return self._once(name, samples, lambda: self._fit(name, samples))

    def _fit(self, name: str, samples: PairedSamples) -> PairPredictor:
        if name in _PLAIN:
            return _PLAIN[name].fit(samples)
        if name == "attention":
            return BenchmarkAttention.fit(samples, self.attention, self.seed)
        if name == "bilinear":
            return self._bilinear(samples)
        if name in _ELSEWHERE:
            return _ELSEWHERE[name].fit(samples, seed=self.seed, bilinear=self._bilinear(samples))
        if name.startswith("anchored"):
            return AnchoredTrees.fit(samples, AnchoredSettings(with_specification="spec" in name), self.seed)
        described, downstream = _split(name)
        settings = TreeSettings(parts=_DESCRIPTIONS[described], downstream=downstream)
        parts = {part: self._part(part, samples) for part in settings.parts}
        return DescribedTrees.fit(samples, settings, self.seed, parts)

    def _bilinear(self, samples: PairedSamples) -> BilinearModel:
        return self._once("bilinear model", samples, lambda: BilinearModel.fit(samples, seed=self.seed))

    def _part(self, name: str, samples: PairedSamples) -> inputs.FeaturePart:
        return self._once(f"part {name}", samples, lambda: self._make_part(name, samples))

    def _make_part(self, name: str, samples: PairedSamples) -> inputs.FeaturePart:
        if name == "published_amm" and samples.amms is not None:
            return inputs.DescribedAmm(self.amm_options or AmmOptions())
        option = name.removeprefix("published_amm_")
        if option not in inputs.OTHER_AMM_OPTIONS:
            return self._fit_part[name](samples, self.seed)
        trained = self._part("published_amm", samples)
        assert isinstance(trained, inputs.PublishedAmm)
        return trained.with_options(inputs.OTHER_AMM_OPTIONS[option], samples)

    def _fit_best(self, samples: PairedSamples, unseen: Unseen) -> PairPredictor:
        names = best_components(samples, unseen)
        return fit_blend(samples, unseen, names, lambda name, data: self.fit(name, data, unseen))

    def _once(self, what: str, samples: PairedSamples, make: Callable[[], Fitted]) -> Fitted:
        key = (what, samples.digest)
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[return-value]


def default_methods(samples: PairedSamples, downstream: Iterable[str] = ("xgboost",)) -> list[str]:
    """Methods that these samples allow, baselines first; other trees than XGBoost for two descriptions only."""
    kinds = [
        f"{described}_{tree}"
        for described in _PARTS
        for tree in downstream
        if tree == "xgboost" or described in _OTHER_DOWNSTREAM_FOR
    ]
    return [name for name in (*kinds, *_MACHINE_MODELS, "best") if _obstacle(name, samples) is None]


def best_components(samples: PairedSamples, unseen: Unseen) -> list[str]:
    """Components of `best`: trees (with specifications if given) and attention; without a benchmark plain answers, too.

    Only where the machine is new do the closed forms add to attention: the bilinear model, which has fewer weights to
    fit on few machines, and the mixtures of known machines and of kernels. Without a benchmark, answers for a new
    application are those for known pairs of machines; all count the same there (`inner_folds`).
    """
    trees = "anchored_xgboost" if samples.specification is None else "anchored_spec_xgboost"
    wanted = [trees, "attention"]
    if unseen == "machine":
        wanted += ["bilinear", "mixture", "kernel_mixture"]
    if not samples.is_benchmark.any() and unseen == "application":
        of_runs = "rates_xgboost" if samples.has_counters else "onehot_xgboost"
        wanted = [of_runs, "spec_xgboost", "pair_median", "typical"]
    elif not samples.is_benchmark.any():
        wanted = ["raw_xgboost", "onehot_xgboost", "spec_xgboost", "unchanged", "typical"]
    return [name for name in wanted if _obstacle(name, samples) is None]


def possible(names: Iterable[str], samples: PairedSamples) -> list[str]:
    """Methods that these samples allow."""
    return [name for name in names if _obstacle(name, samples) is None]


def check_method(name: str, samples: PairedSamples) -> None:
    """Refuse a method that is not known or that these samples do not allow."""
    obstacle = _obstacle(name, samples)
    if obstacle:
        raise BadInputError(f"method {name}: {obstacle}")


def _obstacle(name: str, samples: PairedSamples) -> str | None:
    known = name in (*_MACHINE_MODELS, *_PLAIN, "anchored_spec_xgboost", "best") or _split(name)[0] in _DESCRIPTIONS
    if not known:
        return f"not known; a description ({', '.join(_PARTS)}) with _{', _'.join(DOWNSTREAM)}, or " + ", ".join(
            (*_MACHINE_MODELS, "best")
        )
    if any(word in name for word in _NEED_BENCHMARK) and not samples.is_benchmark.any():
        return "needs benchmark rows: name the benchmark applications"
    if name.startswith("rates") and not samples.has_counters:
        return "needs counters: these columns say how a run was made, as they are the same on all machines"
    if "spec" in name and samples.specification is None:
        return "needs a table of machine specifications"
    return None


def _split(name: str) -> tuple[str, str]:
    """`embedding_amm_random_forest` -> `embedding_amm`, `random_forest`."""
    for downstream in DOWNSTREAM:
        if name.endswith(f"_{downstream}"):
            return name.removesuffix(f"_{downstream}"), downstream
    return "", ""
