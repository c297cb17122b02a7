"""The attention operator (section 5.1): what it computes, what it costs, and the laws of its scores.

* `attention`: softmax and its Jacobian, masks, scaled dot-product attention, entropy of its rows;
* `dot_product`, `gaussian_rows`: laws of a score with random components, and of a row of Gaussian scores;
* `online`, `cost`: attention in linear memory, and operations counted;
* `gradients`, `initialisation`: gradients in closed form, and how signals start out.
"""

from attnmath._rooms import rooms_of

__getattr__, __dir__ = rooms_of(__name__, __path__)
