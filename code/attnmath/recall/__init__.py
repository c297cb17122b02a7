"""Associative recall: does it matter whether attention can concentrate?

Small two-layer models, equal but for their attention, learn to look values up by their keys.

* `task` makes the sequences, `models` the networks, `training` trains and measures one of them;
* `sweep` does so for a grid of settings, in parallel and with interruptions;
* `python -m attnmath.recall --help` is the command, `results` reads the table that it has written.
"""
