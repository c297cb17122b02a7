"""Attention in linear cost (the report): a kernel whose features are summed once for all queries.

* `kernels`, `feature_maps`: linear attention, parallel and recurrent, and the maps that it takes;
* `expansion`: attention by a Taylor expansion about a mean query;
* `random_features`: random maps whose mean is the softmax kernel, and what their estimates vary by.
"""

from attnmath._rooms import rooms_of

__getattr__, __dir__ = rooms_of(__name__, __path__)
