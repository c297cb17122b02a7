"""Translation with little data: do fixed or frozen attention heads help?

Small encoder-decoder models, equal but for the self-attention of their encoder, learn to translate between two
synthetic languages from 500 to 50,000 pairs of sentences.

* `task` makes the languages and the sentences, `bleu` scores a translation;
* `models` are the networks, `training` trains and measures one of them;
* `sweep` does so for every design, number of pairs and seed, and goes on where it was interrupted;
* `python -m attnlab.translation --help` is the command, `results` reads the table that it has written.

What was predicted before the sweep is in PREDICTIONS.md beside this file.
"""
