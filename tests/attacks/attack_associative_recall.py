"""What the chapter on associative recall says itself was measured on the runs of the shipped table."""

from __future__ import annotations

from hunt import no_attack

no_attack(
    "recall/linear-concentrates",
    because="measured: It compares the mean sparsity of the trained elu + 1 models of the table with a bound.",
)
no_attack(
    "recall/identity-spreads",
    because="measured: It compares the mean sparsity of two kinds of trained models of the shipped table.",
)
no_attack(
    "recall/without-concentration",
    because="measured: It gives the recall and the support of nine trained models of the shipped table.",
)
