"""The chart as Helm renders it, for a real API server to judge."""

from tests.chart.conftest import helm, render, template

__all__ = ["helm", "render", "template"]
