"""Random features of the softmax kernel exp(x . y), and attention by them (the report's sections 2.2 and 3.3).

projections : the random matrices, independent or orthogonal.
maps : the six feature maps, from trigonometric to FAVOR#.
performer : attention in linear time by features.
variance, orthogonal : exact variances, of independent and of orthogonal features.
optimal : the parameters of FAVOR++ and FAVOR# that fit given queries and keys.
"""
