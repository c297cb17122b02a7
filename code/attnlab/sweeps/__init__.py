"""What the sweeps of `attnlab.recall` and `attnlab.translation` have in common.

* `training` is how a model is trained;
* `tables` reads and writes tables of runs, without torch;
* `runs` carries the missing runs out through joblib, and writes how a table came about;
* `command` is the command line around them.
"""
