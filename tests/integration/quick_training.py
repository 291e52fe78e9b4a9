"""`perf-assets train` with two methods instead of all: for tests of what follows from trained models."""

from perf_assets.defs.runs import train_fleet
from perf_assets.models import source_training
from perf_assets.storage.lake import Lake

if __name__ == "__main__":
    source_training.WITHOUT_AMM = ("raw_xgboost",)
    source_training.WITH_AMM = ("raw_amm_xgboost",)
    train_fleet(Lake.default().machines(), 0, lambda title: None)
