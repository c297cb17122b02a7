"""A report on the heads of one model: the numbers and figures of eleven chapters, as one page of HTML.

`measures` has what is measured of each head, with the sentence of the book that explains it. `page` draws the page.
``python -m attnlab.report MODEL --text FILE --out DIR`` makes it for a local model.
"""
