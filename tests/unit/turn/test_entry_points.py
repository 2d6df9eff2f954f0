"""A plugin of an installed package is found by its entry point, and runs only when a person has named it."""

from __future__ import annotations

import os
from pathlib import Path

CODE = """
from nanoclaw_memory.turn.plugin import Draft, Plugin


class Weather(Plugin):
    order = 40
    timeout_ms = 200

    def before_turn(self, message, moment):
        return Draft("WEATHER", ("• It rains in Bonn.",), hits=1)


def plugin(context):
    return Weather()
"""


def install(folder: Path) -> None:
    """What pip would leave: a module and its metadata."""
    (folder / "ncm_weather.py").write_text(CODE)
    info = folder / "ncm_weather-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ncm-weather\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nanoclaw_memory.plugins]\nweather = ncm_weather:plugin\n")


def test_a_package_runs_only_when_it_is_named(ncm_process, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    install(site)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    ncm_process("init", PYTHONPATH=path)
    silent = ncm_process("turn", "hello", PYTHONPATH=path)
    assert silent.code == 0
    assert "Bonn" not in silent.out
    allowed = '["graph-memory", "weather"]'
    named = ncm_process("--set", f"plugins.allow={allowed}", "turn", "hello", PYTHONPATH=path)
    assert "[WEATHER]" in named.out
    assert "It rains in Bonn." in named.out
