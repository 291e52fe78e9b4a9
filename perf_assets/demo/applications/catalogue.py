"""The applications of the simulated fleet."""

from perf_assets.demo.applications.design import Application
from perf_assets.demo.applications.kripke import KRIPKE
from perf_assets.demo.applications.laghos import LAGHOS
from perf_assets.demo.applications.minivite import MINIVITE
from perf_assets.demo.applications.sw4lite import SW4LITE
from perf_assets.demo.applications.testdfft import TESTDFFT

APPLICATIONS: tuple[Application, ...] = (LAGHOS, KRIPKE, MINIVITE, SW4LITE, TESTDFFT)
