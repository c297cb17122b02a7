"""Encoder and decoder (the note): attention with and without a causal mask, and remedies of its low rank.

* `bidirectional`: both directions compared on the same scores;
* `depth`: stacks of attention without residual connections;
* `residual_attention`: what a low rank leaves out, and forms that add it again.
"""

from attnmath._rooms import rooms_of

__getattr__, __dir__ = rooms_of(__name__, __path__)
