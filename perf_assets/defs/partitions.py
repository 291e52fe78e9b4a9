"""The partition sets, added to when data lands: machines, and datasets with features and a target of their own."""

import dagster as dg

machines = dg.DynamicPartitionsDefinition(name="machines")
datasets = dg.DynamicPartitionsDefinition(name="datasets")
