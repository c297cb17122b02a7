"""Train one model, choose a checkpoint by validation, and measure its translations."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlab.devices import torch_device
from attnlab.sweeps.training import CLIP, Descent, must_be_finite
from attnlab.threads import one_thread
from attnlab.translation.bleu import corpus_bleu
from attnlab.translation.designs import DESIGNS, HIDDEN
from attnlab.translation.models import Translator
from attnlab.translation.table import RATE
from attnlab.translation.task import BEGIN, END, KINDS, PAD, TARGET_SLOTS, Sentences, corpus
from attnmath.arrays import Numpy
from attnmath.checks import instance, non_negative_integer, one_of, positive, positive_integer

#: Steps between two looks at the validation loss.
EVERY = 100


@dataclass(frozen=True)
class Settings:
    """Everything that a run depends on.

    design : one of `models.DESIGNS`.  pairs : sentences to train on.  seed : of language, sentences, weights and order.
    hidden : width of the encoder's feed-forward parts.  steps, batch, rate : of AdamW, with a linear warm-up over a
    tenth of the steps and a cosine decay to 0.
    """

    design: str
    pairs: int
    seed: int
    hidden: int = HIDDEN
    steps: int = 800
    batch: int = 32
    rate: float = RATE

    def __post_init__(self) -> None:
        one_of(self.design, DESIGNS, "design")
        for name in ("pairs", "hidden", "steps", "batch"):
            positive_integer(getattr(self, name), name)
        if self.pairs > 10**6:
            raise ValueError(f"pairs: expected at most 1000000, got {self.pairs}")
        non_negative_integer(self.seed, "seed")
        positive(self.rate, "rate")


@dataclass(frozen=True)
class Trained:
    """A model at its best checkpoint, the one at the end, and how training went.

    losses : step, training loss and validation loss at each look.  norms : of the gradient of the parameters that all
    designs share, step by step.  cosines : between such gradients of successive steps.  clipped : share of steps whose
    whole gradient was shortened.
    """

    best: Translator
    last: Translator
    losses: Float[Numpy, "looks 3"]
    norms: Float[Numpy, "steps"]
    cosines: Float[Numpy, "steps_1"]
    clipped: float


def run(settings: Settings, device: str = "cpu") -> dict[str, Any]:
    """Train a model and return its settings with what was measured, and the device. See `measure` and `stability`."""
    instance(settings, Settings, "settings")
    torch_device(device)
    with one_thread():  # the order of sums, and so the result, must not depend on the number of cores
        trained = train(settings, device)
        data = corpus(settings.seed, settings.pairs)
        row: dict[str, Any] = asdict(settings) | {"parameters": trained.best.trained_parameters()}
        row |= measure(trained.best, data.test) | {"bleu_last": bleu(trained.last, data.test)}
        best = trained.losses[trained.losses[:, 2].argmin()]
        row |= {"best_step": int(best[0]), "train_best": float(best[1]), "validation_best": float(best[2])}
        row |= {"train_last": float(trained.losses[-1, 1]), "validation_last": float(trained.losses[-1, 2])}
        return row | stability(trained) | {"device": device}


def train(settings: Settings, device: str = "cpu") -> Trained:
    """Train a model from its seed: weights and sentences depend on nothing else.

    A learning rate that is so high that weights leave the range of the numbers raises `ValueError`.
    """
    s = instance(settings, Settings, "settings")
    place = torch_device(device)
    data = corpus(s.seed, s.pairs)
    sentences, seen = tensors(data.training, place), tensors(data.training[:300], place)
    validation = tensors(data.validation, place)
    model = Translator(s.design, s.hidden, seed=s.seed).to(place)
    shared = model.shared()
    descent = Descent(model, s.rate, s.steps, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
    order, best, lowest = _batches(s, data.training), model, np.inf
    before, norms, cosines, clipped, losses = None, [], [], 0, []
    with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []):
        torch.manual_seed(s.seed)  # of dropout
        for step in range(1, s.steps + 1):
            model.train()
            chosen = torch.from_numpy(next(order)).to(place)
            loss(model, *(part[chosen] for part in sentences)).backward()
            gradient = torch.cat([p.grad.flatten() for p in shared if p.grad is not None])
            norms.append(gradient.norm())
            if before is not None:
                cosines.append(gradient @ before / (norms[-1] * norms[-2]))
            before = gradient
            clipped += bool(descent.step() > CLIP)
            if step % EVERY == 0 or step == s.steps:
                model.eval()
                with torch.no_grad():
                    losses.append((step, float(loss(model, *seen)), float(loss(model, *validation))))
                if losses[-1][2] < lowest:
                    best, lowest = copy.deepcopy(model), losses[-1][2]
    must_be_finite(model, s.rate)
    best.eval(), model.eval()
    turned = torch.stack(cosines) if cosines else torch.zeros(0)
    return Trained(best, model, np.array(losses), torch.stack(norms).double().cpu().numpy(),
                   turned.double().cpu().numpy(), clipped / s.steps)  # fmt: skip


def loss(model: Translator, source: Int[Tensor, "size n"], target: Int[Tensor, "size m"]) -> Tensor:
    """Mean cross-entropy of the target tokens, in nats, each given the tokens before it."""
    source, target = _trimmed(source), _trimmed(target)
    logits = model(source, shifted(target))
    return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


def shifted(target: Int[Tensor, "size m"]) -> Int[Tensor, "size m"]:
    """What the decoder sees: `BEGIN`, then the target without its last token."""
    return nn.functional.pad(target, (1, 0), value=BEGIN)[:, :-1]


@torch.no_grad()
def measure(model: Translator, test: Sentences) -> dict[str, float]:
    """Measure a model's translations of sentences that were not trained on.

    bleu : of greedy translations.  exact : share of them without a mistake.  accuracy and accuracy by kind : share of
    target tokens that have the highest logit given the right tokens before them.
    """
    instance(model, Translator, "model"), instance(test, Sentences, "test")
    source, target = tensors(test, model.positions.device)
    right = (model(source, shifted(target)).argmax(-1) == target).cpu().numpy()
    kinds = {f"accuracy_{name}": float(right[test.kind == place].mean()) for place, name in enumerate(KINDS)}
    found = translations(model, test)
    references = [_words(row) for row in test.target]
    exact = float(np.mean([a == b for a, b in zip(found, references, strict=True)]))
    return {"bleu": corpus_bleu(found, references), "exact": exact,
            "accuracy": float(right[test.kind >= 0].mean())} | kinds  # fmt: skip


def bleu(model: Translator, test: Sentences) -> float:
    """BLEU of greedy translations."""
    return corpus_bleu(translations(model, test), [_words(row) for row in test.target])


@torch.no_grad()
def translations(model: Translator, sentences: Sentences) -> list[list[int]]:
    """Greedy translations: at each step the token with the highest logit, until `END` or the longest sentence."""
    source, _ = tensors(sentences, model.positions.device)
    memory, _ = model.encode(source)
    found = torch.full((len(source), 1), BEGIN, device=source.device)
    for _ in range(TARGET_SLOTS):
        logits = model.decode(memory, source, found)[:, -1]
        found = torch.cat([found, logits.argmax(-1, keepdim=True)], dim=1)
    return [_words(row) for row in found[:, 1:].cpu().numpy()]


def stability(trained: Trained) -> dict[str, float]:
    """Statistics of the gradient of the parameters that all designs share, after the warm-up.

    gradient_cv : standard deviation of its norm over the mean.  gradient_jitter : standard deviation of the logarithm
    of the ratio of successive norms, which a slow trend leaves alone.  gradient_cosine : mean cosine between successive
    gradients.  clipped : share of all steps at which the whole gradient was longer than `CLIP`.
    """
    warm = len(trained.norms) // 10
    norms, cosines = trained.norms[warm:], trained.cosines[warm:]
    ratios = np.diff(np.log(norms))
    return {
        "gradient_cv": float(norms.std() / norms.mean()),
        "gradient_jitter": float(ratios.std()) if len(ratios) else float("nan"),
        "gradient_cosine": float(cosines.mean()) if len(cosines) else float("nan"),
        "clipped": trained.clipped,
    }


def tensors(sentences: Sentences, device: torch.device) -> tuple[Int[Tensor, "size n"], Int[Tensor, "size m"]]:
    """Source and target tokens on a device."""
    return tuple(torch.from_numpy(part).to(device) for part in (sentences.source, sentences.target))  # type: ignore[return-value]


def _batches(settings: Settings, training: Sentences) -> Iterator[Int[Numpy, "batch"]]:
    """Indices of the sentences of each step: every sentence once before any comes again, in a new order each time.

    Sixteen batches at a time are sorted by length and then shuffled, so that a batch has little padding.
    """
    rng = np.random.default_rng([settings.seed, 4, settings.pairs])
    length = (training.target != PAD).sum(1) + (training.source != PAD).sum(1)
    left, block = np.zeros(0, dtype=int), 16 * settings.batch
    while True:
        while len(left) < block:
            left = np.concatenate([left, rng.permutation(settings.pairs)])
        ordered = left[:block][np.argsort(length[left[:block]], kind="stable")]
        yield from rng.permutation(ordered.reshape(16, settings.batch))
        left = left[block:]


def _trimmed(tokens: Int[Tensor, "size n"]) -> Int[Tensor, "size m"]:
    """Without the columns in which every sentence has ended."""
    return tokens[:, : int((tokens != PAD).sum(1).max())]


def _words(row: np.ndarray) -> list[int]:
    """The tokens before the end of the sentence."""
    tokens = row.tolist()
    return tokens[: tokens.index(END)] if END in tokens else tokens
