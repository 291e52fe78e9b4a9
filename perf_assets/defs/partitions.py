"""The one partition set: machines, added when their data lands."""

import dagster as dg

machines = dg.DynamicPartitionsDefinition(name="machines")
