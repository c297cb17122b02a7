"""attnmath: what attention computes, what is true of it, and the kinds of figures.

The rooms bear the names of the parts of the book, and use only what stands above them:

* `attnmath.operator`: softmax, its Jacobian, scaled dot-product attention, its gradients, laws and cost;
* `attnmath.matrix`: the attention matrix as an operator: spectrum, powers, ranks, sparse patterns;
* `attnmath.sparsity`: the l1/l2 sparsity of attention rows, in closed forms that are accurate everywhere;
* `attnmath.linear_cost`: kernels, feature maps and random features, by which attention takes linear cost;
* `attnmath.fixed_attention`: fixed patterns, sinusoidal positions, frozen heads, and a comparison of mechanisms;
* `attnmath.encoder_decoder`: attention with and without a causal mask, in depth, and mended where its rank is low.

Beside them: `attnmath.figures` draws on given Axes, `attnmath.symbols` has exact forms, and all rest on
`attnmath.checks`, `attnmath.arrays` and `attnmath.estimate` (Monte Carlo estimates with their standard errors).

What attention itself computes takes numpy arrays and torch tensors alike; torch is optional, and so are matplotlib
(the extra ``figures``) and sympy (the extra ``symbols``). A module is imported when it is first named:

>>> import attnmath
>>> attnmath.operator.attention.softmax([0.0, 0.0])
array([0.5, 0.5])
"""

from attnmath._rooms import rooms_of

__version__ = "2.0.0"

__getattr__, __dir__ = rooms_of(__name__, __path__)
