"""attnlab: the laboratory of the book: trained heads and their data, seeded experiments, and everything that trains.

* `attnlab.heads`: queries, keys and weights of a trained encoder and of small decoders, and what made them;
* `attnlab.experiments`: seeded runs: parameters and a seed go in, estimates with their errors or tables come out;
* `attnlab.recall`, `attnlab.translation`: small models that look up pairs, or translate, in many designs;
* `attnlab.sweeps`: runs over designs, sizes and seeds, kept in a table that goes on where it was interrupted;
* `attnlab.commands`, `attnlab.records`, `attnlab.threads`, `attnlab.devices`: what all commands share.

``python -m attnlab`` lists the commands.
"""

__version__ = "2.0.0"
