"""The device that a model is trained on. Importing this needs no torch; calling it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def torch_device(device: str) -> torch.device:
    """Return torch's device of that name, if torch can use it here.

    >>> torch_device("cpu").type
    'cpu'
    """
    import torch

    if not isinstance(device, str):
        raise TypeError(f"device: expected a name such as cpu or cuda, got {type(device).__name__}")
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()  # a device without numbers, such as meta, has none to give
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"device: expected one that torch finds here, such as cpu, got {device!r} ({reason})"
        ) from None
    return found
