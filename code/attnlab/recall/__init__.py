"""Associative recall: does it matter whether attention can concentrate?

Small one-layer models, equal but for their attention, learn to look values up by their keys. A fixed parameter makes
the rows of each attention more or less concentrated.

* `task` makes the sequences, `models` the networks, `training` trains and measures one of them;
* `sweep` does so for designs of many settings, in parallel and with interruptions;
* `python -m attnlab.recall --help` is the command, `results` reads the table that it has written.
"""
