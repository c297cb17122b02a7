"""Feature maps of linear attention: cosine, polynomial, and the Taylor series of exp."""
