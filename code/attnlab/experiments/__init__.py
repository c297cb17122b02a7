"""Seeded experiments: parameters and a seed in, estimates with their errors (or tables) out. Nothing here draws.

>>> from attnlab.experiments import scaling
>>> scaling.score_variance([4], law="rademacher", draws=100, seed=1).value.shape
(1,)
"""
