"""Attention heads of real trained models.

`load_heads()` gives the 72 heads of a trained encoder that the book measures, `load_pretrained()` the 270 heads of a
decoder that others have trained, `load_decoders()` the heads of small causal decoders from several seeds, trained and
untrained. `load.load_decoder()` gives all weights of one of these.

`load` reads queries and keys from a file. `extract`, a command, writes such a file from a local model; `encoder` and
`llama` are the forward passes that it runs, `layout`, `llama_gguf`, `llama_directory` and `tokens` know the files, and
`pretrained` has what the shipped pretrained decoder was asked. `train`, a command, trains the small decoders: `corpus`
is their text and `decoder` their model. `weights`, a command, keeps the weights of one, and `prune`, a command,
measures it without some of its heads; `prune_pretrained`, a command, does so with the pretrained decoder.

`positional` has distances of heads from patterns of position, `pruning` the output of a decoder with heads removed or
replaced, `locality` the mutual information of symbols of a text. `kinds` has the three kinds of models, with the units
that a mean over one kind may count.
"""

from attnlab.heads.load import (
    SAMPLES,
    Decoders,
    Heads,
    load_decoders,
    load_heads,
    load_pretrained,
    read_decoders,
    read_heads,
)

__all__ = [
    "SAMPLES", "Decoders", "Heads", "load_decoders", "load_heads", "load_pretrained", "read_decoders", "read_heads",
]  # fmt: skip
