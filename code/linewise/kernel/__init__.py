"""A second kernel for what a kernel can take: steps of derivations that Coq proves as well, and from what."""
