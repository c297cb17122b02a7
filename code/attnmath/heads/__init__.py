"""Attention heads of a real trained encoder: `load_heads()` gives the 72 heads that the book measures.

`load` reads queries and keys from a file. `extract`, a command, writes such a file from a local model,
and `encoder` is the forward pass that it runs.
"""

from attnmath.heads.load import SAMPLES, Heads, load_heads, read_heads

__all__ = ["SAMPLES", "Heads", "load_heads", "read_heads"]
