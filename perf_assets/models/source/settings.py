"""Settings of a training of source models."""

from pydantic import BaseModel, ConfigDict, Field

from perf_assets.models.common.regressors import DOWNSTREAM


class SourceSettings(BaseModel):
    """Methods that are tried, and what is random."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    without_amm: tuple[str, ...] = Field(
        default=tuple(f"{described}_{trees}" for described in ("raw", "embedding") for trees in DOWNSTREAM),
        min_length=1,
        description="Methods of which the best answers where a machine is not described",
    )
    with_amm: tuple[str, ...] = Field(
        default=tuple(f"{described}_{trees}" for described in ("raw_amm", "embedding_amm") for trees in DOWNSTREAM),
        min_length=1,
        description="Methods with published AMMs, of which the best is a candidate of the blends",
    )
    baselines: tuple[str, ...] = Field(
        default=("onehot_xgboost", "spec_xgboost"), description="Methods that are scored beside, and never chosen"
    )
    machine_models: tuple[str, ...] = Field(
        default=("anchored", "attention", "bilinear", "mixture", "kernel_mixture"),
        description="Machine models that blends are made of, beside trees with AMMs and plain answers",
    )
    prior_components: tuple[str, ...] = Field(
        default=("bilinear", "mixture"), min_length=1, description="Closed forms that target models start from"
    )
    attention_steps: int = Field(default=250, ge=1, description="Training steps of each net of the attention")
    attention_members: int = Field(default=4, ge=1, description="Nets of the attention, whose mean answers")
    seed: int = Field(default=0, ge=0, description="Seed of everything that is random")

    @classmethod
    def quick(cls) -> "SourceSettings":
        """Two methods and a short training of the attention: a tenth of the time, and less accurate."""
        return cls(without_amm=("raw_xgboost",), with_amm=("raw_amm_xgboost",), attention_steps=60, attention_members=1)
