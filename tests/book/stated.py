"""What ``stated.yml`` says, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def stated() -> Any:
    """Return the equations by their numbers, and the formulas and the numbers by chapter."""
    return yaml.safe_load(Path(__file__).with_name("stated.yml").read_text(encoding="utf-8"))
