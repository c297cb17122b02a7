"""The book in another language: catalogues of messages, one for each page, and the edition that is built from them.

`blocks` cuts Markdown into messages and puts it together again. `catalogue` keeps messages and their translations in PO
files below ``lang/``. `faults` says what is wrong with a translation, by the `rules` of its language. `tree` writes the
translated sources, which Sphinx then reads like the others, and `joined` makes one site of both editions. The command
is ``python tools/translate.py``.
"""
