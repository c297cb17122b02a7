"""Attention heads of real trained models.

`load_heads()` gives the 72 heads of a trained encoder that the book measures, `load_decoders()` the heads of small
causal decoders from several seeds, trained and untrained. `load.load_decoder()` gives all weights of one of them.

`load` reads queries and keys from a file. `extract`, a command, writes such a file from a local model,
and `encoder` is the forward pass that it runs. `train`, a command, trains the decoders: `corpus` is their text and
`decoder` their model. `weights`, a command, keeps the weights of one, and `prune`, a command, measures it
without some of its heads.

`positional` has distances of heads from patterns of position, `pruning` the output of a decoder with heads removed or
replaced, `locality` the mutual information of symbols of a text.
"""

from attnlab.heads.load import SAMPLES, Decoders, Heads, load_decoders, load_heads, read_decoders, read_heads

__all__ = ["SAMPLES", "Decoders", "Heads", "load_decoders", "load_heads", "read_decoders", "read_heads"]
