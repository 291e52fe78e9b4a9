"""Settings of the models of relative-performance vectors."""

from pydantic import BaseModel, ConfigDict, Field, field_validator

COMPONENTS = ("vae_dnn", "random_forest", "xgboost", "pairwise")
"""Methods that a blend may consist of."""


class VaeDnnSettings(BaseModel):
    """Widths of the sigma-VAE and the DNN, and how long each stage takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    latent: int = Field(default=16, ge=1, description="Width of the latent vector")
    vae_hidden: int = Field(default=256, ge=1, description="Width of the hidden layers of the sigma-VAE")
    dnn_hidden: int = Field(default=1024, ge=1, description="Width of the three hidden layers of the DNN")
    calibration_epochs: int = Field(default=10, ge=0, description="Epochs on the rows of CPUs alone")
    ramp_epochs: int = Field(default=25, ge=1, description="Epochs in which the weight of the divergence goes to 1")
    joint_epochs: int = Field(default=12, ge=0, description="Epochs with the regression loss of the DNN added")
    most_dnn_epochs: int = Field(default=25, ge=1, description="Most epochs of the DNN on the frozen encoder")
    patience: int = Field(default=6, ge=1, description="Epochs without a gain after which the DNN stops")
    rows_an_epoch: int = Field(default=2048, ge=1, description="Random rows that an epoch of the DNN looks at")
    learning_rate: float = Field(default=1e-3, gt=0, description="Learning rate of all stages")


class VectorSettings(BaseModel):
    """Settings of a model of relative-performance vectors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    components: list[str] = Field(
        default=list(COMPONENTS), min_length=1, description=f"What is blended, of {', '.join(COMPONENTS)}"
    )
    net: VaeDnnSettings = Field(default=VaeDnnSettings(), description="Settings of the method vae_dnn")
    trees: int = Field(default=80, ge=1, description="Trees of random_forest")

    @field_validator("components")
    @classmethod
    def _known(cls, given: list[str]) -> list[str]:
        unknown = [name for name in given if name not in COMPONENTS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not known: use some of {', '.join(COMPONENTS)}")
        return given

    @classmethod
    def quick(cls) -> "VectorSettings":
        """A small net for a few epochs, and a forest: seconds instead of minutes, and less accurate."""
        net = VaeDnnSettings(
            latent=8,
            vae_hidden=16,
            dnn_hidden=16,
            calibration_epochs=1,
            ramp_epochs=2,
            joint_epochs=2,
            most_dnn_epochs=3,
            patience=3,
        )
        return cls(components=["vae_dnn", "random_forest"], net=net, trees=20)
