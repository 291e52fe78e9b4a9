"""A downstream model of one's own on xAMM's unified input: `perf-assets export inputs --out inputs.parquet`, then this.

Prints the median relative error for target machines that the fit has not seen.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

table = pd.read_parquet(sys.argv[1] if len(sys.argv) > 1 else "inputs.parquet")
inputs, wanted = table.filter(regex="^(embedding|source_amm|target_amm)_"), np.log(table["relative_time"])
model, folds = ExtraTreesRegressor(100, random_state=0), GroupKFold(3)
found = cross_val_predict(model, inputs, wanted, groups=table["target_machine"], cv=folds)

error = np.median(np.abs(np.expm1(found - wanted)))
sys.stdout.write(f"median |predicted / true - 1|: {error:.1%} of {len(table)} rows\n")
