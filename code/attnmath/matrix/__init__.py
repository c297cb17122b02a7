"""The attention matrix (section 5.5): a row-stochastic matrix, its spectrum, its ranks and its patterns.

* `spectrum`: eigenvalues, singular values and norms;
* `mixing`: powers of the matrix, its limit, and how fast rows become equal;
* `rank`: rank in floating point, and the effective ranks;
* `sinks`: keys that collect the weight of many queries, and the matrix without them;
* `patterns`: masks of windows, strides, blocks and hubs;
* `experts`: what a mixture of experts does with the rank.
"""

from attnmath._rooms import rooms_of

__getattr__, __dir__ = rooms_of(__name__, __path__)
