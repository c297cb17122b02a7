"""linewise: derivations that are verified line by line, and claims whose verdicts code has given.

* `linewise.derive`: a derivation is a chain of displayed lines, each verified against the one before it;
* `linewise.ledger`: a claim is a checkable sentence of a source; evidence decides it, and a card shows the verdict;
* `linewise.pages`: extensions of Sphinx that show cards, and make the pages *Ledger*, *Errata* and *Coverage*.

What the sources of a book are, how their places are written, and which verdicts and grades there are, the book's own
configuration says: see `linewise.conventions`. ``python -m linewise FOLDER`` says what is wrong with a book.
"""

__version__ = "2.0.0"
