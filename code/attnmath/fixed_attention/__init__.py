"""Fixed, sparse and frozen attention (the report): what is left when scores are not learned.

* `fixed_patterns`: the seven patterns of positions;  `positions`: sinusoidal and rotary positions;
* `frozen_heads`: heads whose projections are random and stay;  `johnson_lindenstrauss`: what a projection keeps;
* `reachability`: how many layers a token needs to hear of another one;
* `mechanisms`: parameters, operations and kept numbers of the mechanisms that the report compares.
"""

from attnmath._rooms import rooms_of

__getattr__, __dir__ = rooms_of(__name__, __path__)
