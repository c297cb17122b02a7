"""What all tests share: deterministic hypothesis, no window, no colours from the environment."""

from __future__ import annotations

import gc
import os

import matplotlib
from hypothesis import settings

# Notebooks choose their own backend; the tests draw in memory. Not by environment variable: kernels inherit it.
os.environ.pop("MPLBACKEND", None)
matplotlib.use("Agg")

# The same examples on every run: a test that fails by chance would be one nobody believes.
# To explore with fresh ones: pytest --hypothesis-profile=explore
settings.register_profile("fixed", derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("fixed")

# Parsed pages, notebooks and expressions are trees of many small objects: with Python's default the collector visits
# them after every 700 new ones.
gc.set_threshold(200_000, 10, 100)
