"""The numbers behind the figures: a module for each chapter; each function is seeded and returns keyword arguments."""
