"""Output of a command about the runs it executes: the lines that steps log, without Dagster's own."""

import logging
import sys

import dagster as dg

NAME = "progress"
_OF_DAGSTER = ("Skipping step ", "Dependencies for step ")
"""First words of lines that only follow from a step that has logged its reason already."""
_SAID_AT_THE_END = ("no target model of ", "no model of the dataset ", "no scores of ")
"""Starts of lines with the reason that the command ends with."""


class _OwnLines(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        meta = getattr(record, "dagster_meta", {})
        is_own = bool(meta) and meta.get("dagster_event") is None
        return is_own and not str(meta.get("orig_message", "")).startswith(_OF_DAGSTER + _SAID_AT_THE_END)


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return str(getattr(record, "dagster_meta", {}).get("orig_message", record.getMessage()))


@dg.logger(None, description="Lines that steps log, plain, to stderr: for commands that run jobs themselves")
def progress_logger(context: dg.InitLoggerContext) -> logging.Logger:
    """A logger of its own for every run, so that no line comes twice."""
    logger = logging.Logger(NAME, logging.INFO)
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_OwnLines())
    handler.setFormatter(_Plain())
    logger.addHandler(handler)
    return logger
