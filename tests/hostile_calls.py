"""Drawing functions, experiments, recall and translation: ordinary arguments of each, and hostile ones instead."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import hostile as numeric
import numpy as np

import attnlab
import attnmath.figures
from attnlab.recall.results import Cell
from attnlab.translation.task import draw_language
from attnmath.estimate import Estimate

TWO = Estimate(np.asarray([1.0, 2.0]), np.full(2, 0.1))
WORDS = {"xlabel": "x", "ylabel": "y"}
LOG = {"xscale": "log", "yscale": "log"}
RUN = {"attention": "decay", "parameter": 0.9, "unit": True, "pairs": 2, "head": 4, "width": 8, "seed": 0, "rate": 0.1,
       "validation": 0.5, "recall": 0.5, "S": 0.5}  # fmt: skip
CELL = Cell("decay", 0.9, True, 2, 4, 8, 0.1, (RUN, RUN | {"seed": 1}))
LANGUAGE = draw_language(np.random.default_rng(0))
ROW = {"design": "fixed", "pairs": 500, "hidden": 128, "seed": 0, "bleu": 50.0}
RATED = [ROW | {"seed": seed, "rate": 0.004, "validation_best": 1.5} for seed in (0, 1)]

#: Ordinary arguments of the drawing functions, but for `ax`.
FIGURES: dict[str, dict[str, Any]] = {
    "curves.curves": {"x": [1.0, 2.0], "curves": {"a": [1.0, 2.0]}, "reference": {"b": [2.0, 1.0]},
                      "legend_at": (0.5, 0.5), **WORDS, **LOG},
    "arrows.curves_and_arrows": {"curves": {"a": np.eye(2)}, "arrows": {"u": [1.0, 0.5]}, "reach": 2.0, **WORDS},
    "heatmap.attention_heatmap": {"weights": [[0.5, 0.5]], "query_labels": ["q"], "key_labels": ["a", "b"],
                                  "title": "t", "colorbar": True},
    "heatmap.mask_pattern": {"mask": [[True, False]]},
    "heatmap.matrix_heatmap": {"matrix": [[1.0, -0.5]], "limit": 2.0},
    "intervals.values_with_intervals": {"points": {"a": [[4.0, 0.9, 0.5, 1.4]]}, "ylabel": "y", "xlabel": "x",
                                        "xscale": "log", "ticks": [4.0], "level": 0.5, "dodge": 1.1,
                                        "connected": True, "place": "best"},
    "lines.against_prediction": {"x": [1, 2], "measured": {"a": TWO}, "predicted": {"p": [1.0, 2.0]}, "dodge": 1.1,
                                 **WORDS, **LOG},
    "lines.falling": {"x": [1, 2], "values": {"a": [1.0, 0.5]}, "rates": {"r": [1.0, 0.5]}, **WORDS},
    "lines.family": {"x": [1, 2], "curves": {"a": [1.0, 0.5]}, "reference": {"r": [1.0, 0.5]}, "title": "t",
                     **WORDS, **LOG},
    "lines.letter_panels": {"panels": None},
    "lines.ordered_colours": {"count": 3},
    "designs.recall_against": {"points": {"a": [[4.0, 0.9, 0.5, 1.4]]}, "connected": True,
                              "baselines": {"b": [[4.0, 0.1]]}, "xlabel": "x",
                              "xscale": "log", "ticks": [4.0], "title": "t", "legend": "best"},
    "show.encode": {"figure": None, "format": "svg"},
    "show.show": {"figure": None},
    "methods.clouds_over_diagonal": {"clouds": {"a": ([1.0, 2.0], [1.5, 2.5])}, "special": {"p": (1.0, 2.0)}, **WORDS},
    "methods.errors_by_method": {"x": [1.0, 2.0], "errors": {"m": [0.1, 0.2]}, "xlabel": "x"},
    "methods.times_by_method": {"times": {"m": 0.5}, "xlabel": "x"},
    "spectra.decays_beside_predictions": {"decays": {"a": [0.5, 0.25]}, "rates": {"a": 0.5}, "ylabel": "y"},
    "spectra.dots_by_layer": {"values": [[1.0, 2.0]], "bounds": [1.0], "ylabel": "y",
                               "intervals": ([[0.5, 1.5]], [[1.5, 2.5]])},
    "spectra.quantile_bands": {"bands": {"a": [[0.5, 0.2], [1.0, 0.5], [1.5, 1.0]]}, "mark": 1, **WORDS},
    "spectra.unit_disc": {"values": [0.5j, 0.5], "reference": [1.0], "title": "t"},
}  # fmt: skip

#: Ordinary arguments of the experiments, of recall and of translation.
OTHERS: dict[str, dict[str, Any]] = {
    "experiments.arguments.several": {"value": 3, "name": "value"},
    "experiments.arguments.widths_of": {"widths": [2], "name": "widths"},
    "experiments.four_bits.disturbed": {"W": np.eye(2, 32), "rng": np.random.default_rng(0)},
    "experiments.four_bits.measures": {"A": np.tri(3) / [[1], [2], [3]]},
    "experiments.four_bits.rounded": {"W": np.eye(2, 32)},
    "experiments.gradient_flow.layer_gradients": {"depth": 2, "n": 3, "width": 2, "residual": True, "scaled": True,
                                                  "draws": 3, "seed": 1},
    "experiments.gradient_flow.query_gradient": {"lengths": [2], "width": 2, "shared": True, "queries": 0.5,
                                                 "scaled": True, "draws": 3, "seed": 1},
    "experiments.gradient_flow.weights_gradient": {"lengths": [2], "width": 2, "queries": 0.5, "draws": 3, "seed": 1},
    "experiments.locality.near_keys": {"order": np.asarray([2, 0, 1]), "near": 1, "in_text": True},
    "experiments.public_implementations.tasks": {"lengths": [256], "distributions": ["linformer"]},
    "experiments.public_measures.inputs": {"kind": "gaussian", "n": 5, "seed": 1},
    "experiments.public_measures.heads_of": {"group": "decoders"},
    "experiments.public_measures.causal": {"group": "decoders"},
    "experiments.public_measures.group_of": {"kind": "encoder 0.1, half"},
    "experiments.public_measures.choosing": {"kind": "encoder 0.1"},
    "experiments.public_measures.mean_of_values": {"kind": "trained", "n": 5, "matrix": True, "causal": False},
    "experiments.rank_collapse.distance_from_equal_rows": {"depth": 2, "skip": True, "n": 3, "width": 2, "d_k": 2,
                                                           "networks": 3, "seed": 1},
    "experiments.scaling.normal_rows": {"keys": [3], "deviations": [0.5], "rows": 4, "seed": 1},
    "experiments.scaling.score_kurtosis": {"widths": [2], "law": "uniform", "draws": 5, "seed": 1},
    "experiments.scaling.score_variance": {"widths": [2], "law": "uniform", "sigma": 1.0, "draws": 5, "seed": 1},
    "experiments.sparse_rows.empty_share": {"t": 0.5, "n": 3, "rows": 4, "seed": 1},
    "experiments.sparse_rows.log_excess": {"gamma": 0.5, "n": 3, "rows": 4, "seed": 1},
    "experiments.sparse_rows.mean_sparsity": {"activation": "exp", "beta": 0.5, "gamma": 1.0, "n": 3, "rows": 4,
                                              "seed": 1},
    "experiments.sparse_rows.softmax_sparsity": {"gammas": [0.5], "n": 3, "rows": 4, "seed": 1},
    "heads.models.head_of": {"model": "encoder"},
    "heads.models.heads_of": {"model": "encoder", "text": "sentence"},
    "heads.models.mask_of": {"model": "encoder", "n": 3},
    "heads.models.seeds_of": {"model": "pretrained decoder"},
    "recall.results.best_cells": {"rows": [RUN]},
    "recall.results.by_seed": {"cells": [CELL], "quantity": "recall"},
    "recall.results.choose": {"cells": [CELL], "attention": "decay", "parameter": 0.9, "unit": True, "pairs": 2,
                              "head": 4, "width": 8},
    "recall.results.recall": {"cell": CELL},
    "recall.sweep.grid": {"designs": ["pairs"], "attentions": ["decay"], "seeds": [0], "rates": [0.1]},
    "recall.table.check_parameter": {"attention": "decay", "parameter": 0.5},
    "recall.task.draw": {"size": 2, "pairs": 2, "rng": np.random.default_rng(0)},
    "recall.task.most_frequent": {"pairs": 2},
    "recall.training.concentration": {"rows": np.ones((1, 1, 2))},
    "sweeps.training.schedule": {"step": 3, "steps": 20},
    "devices.torch_device": {"device": "cpu"},
    "nulls.same_setting": {"values": [[0.5, 0.25], [0.75, 0.5]], "axis": -1},
    "sweeps.tables.exact": {"value": 0.5},
    "sweeps.tables.rounded": {"value": 0.5},
    "translation.bleu.corpus_bleu": {"translations": [["a", "b"]], "references": [["a", "c"]]},
    "translation.designs.equal_hidden": {"design": "fixed"},
    "translation.results.at_own_rates": {"rows": RATED, "by": "validation_best"},
    "translation.results.by_seed": {"rows": [ROW], "design": "fixed", "pairs": 500, "quantity": "bleu", "equal": False},
    "translation.results.chosen_rates": {"rows": RATED, "by": "bleu"},
    "translation.results.compare": {"differences": [1.0, 2.0], "comparisons": 3},
    "translation.results.complete_seeds": {"rows": [ROW]},
    "translation.sweep.grid": {"parts": ["main"], "pairs": [500], "seeds": [0]},
    "translation.sweep.own_rate_grid": {"rows": RATED, "pairs": [500], "seeds": [2]},
    "translation.sweep.rate_grid": {"pairs": [500]},
    "translation.task.corpus": {"seed": 0, "pairs": 20},
    "translation.task.draw_language": {"rng": np.random.default_rng(0)},
    "translation.task.draw_sources": {"size": 3, "language": LANGUAGE, "rng": np.random.default_rng(0)},
    "translation.task.sentence": {"tokens": [7, 140], "language": "source"},
    "translation.task.translate": {"source": [[4, 170, 110, 5, 171]], "language": LANGUAGE},
}  # fmt: skip
#: Modules of attnlab that are tried elsewhere, and where.
ELSEWHERE = {
    "__main__": "test_commands",
    "book": "test_commands",
    "commands": "test_commands",
    "heads.decoder": "test_decoder",
    "heads.example": "test_example",
    "heads.kinds": "test_nulls",
    "heads.layout": "test_heads",
    "heads.llama": "test_llama",
    "heads.llama_directory": "test_llama",
    "heads.llama_gguf": "test_llama",
    "heads.local": "test_report",
    "heads.pretrained": "test_llama",
    "heads.prune": "test_positional",
    "heads.prune_pretrained": "test_llama",
    "heads.tokens": "test_llama",
    "heads.train": "test_decoder",
    "heads.weights": "test_positional",
    "records": "test_data",
    "report.__main__": "test_report",
    "report.measures": "test_report",
    "report.page": "test_report",
    "sweeps.command": "test_recall",
    "threads": "test_commands",
}
#: Not called here, and why.
LEFT_OUT = {
    "experiments.four_bits.load_four_bits": "no argument",
    "experiments.four_bits.main": "reads the command line",
    "experiments.four_bits.run": "reads and writes files: see test_four_bits",
    "experiments.sinks.load_sinks": "no argument",
    "experiments.sinks.main": "reads the command line",
    "experiments.sinks.run": "reads and writes files: see test_sink_losses",
    "experiments.locality.load_locality": "no argument",
    "experiments.locality.main": "reads the command line",
    "experiments.locality.one": "trains: see test_positional",
    "experiments.locality.run": "trains: see test_positional",
    "experiments.public_adapters.imported": "runs a package: see test_public_implementations",
    "experiments.public_adapters.quiet": "runs a package: see test_public_implementations",
    "experiments.public_measures.output_error": "runs a package: see test_public_implementations",
    "experiments.public_measures.head_errors": "runs a package: see test_public_implementations",
    "experiments.public_measures.head_contrasts": "runs a package: see test_public_implementations",
    "experiments.public_measures.over_processes": "takes what speed gives: see test_public_implementations",
    "experiments.public_measures.matrix_error": "runs a package: see test_public_implementations",
    "experiments.public_measures.shuffled_error": "runs a package: see test_public_implementations",
    "experiments.public_measures.batch_change": "runs a package: see test_public_implementations",
    "experiments.public_measures.future": "runs a package: see test_public_implementations",
    "experiments.public_measures.speed": "runs a package: see test_public_implementations",
    "experiments.public_measures.instances": "runs a package: see test_public_implementations",
    "experiments.public_implementations.carry_out": "runs a package: see test_public_implementations",
    "experiments.public_implementations.compare": "writes a file: see test_public_implementations",
    "experiments.public_implementations.smallest_size": "reads rows of a table: see test_public_implementations",
    "experiments.public_implementations.read_table": "reads a file: see test_public_implementations",
    "experiments.public_implementations.write_provenance": "writes a file: see test_public_implementations",
    "experiments.public_implementations.load_table": "no argument",
    "experiments.public_implementations.load_provenance": "no argument",
    "experiments.public_implementations.main": "reads the command line",
    "recall.__main__.main": "reads the command line",
    "recall.results.load_division": "no argument",
    "recall.results.load_results": "no argument",
    "recall.results.load_provenance": "no argument",
    "recall.training.run": "trains: see test_recall",
    "recall.training.train": "trains: see test_recall",
    "recall.training.measure": "trains: see test_recall",
    "recall.training.build": "makes a model: see test_recall",
    "sweeps.tables.truth": "reads a text of a table: see test_recall",
    "sweeps.runs.each": "a check of whatever was given",
    "sweeps.training.must_be_finite": "takes a trained model: see test_recall",
    "translation.__main__.main": "reads the command line",
    "translation.results.load_results": "no argument",
    "translation.results.load_provenance": "no argument",
    "translation.results.load_rates": "no argument",
    "translation.verdicts.judge": "takes the whole table: see test_translation",
    **{
        f"translation.training.{name}": "trains: see test_translation"
        for name in ("run", "train", "loss", "measure", "bleu", "translations", "stability", "tensors", "shifted")
    },
}


def public(package: ModuleType, *, without: tuple[str, ...] = ()) -> dict[str, Callable[..., Any]]:
    """The public functions of the modules of a package, by module and name."""
    found = {}
    for place in numeric.modules_of(package):
        inside = place.removeprefix(f"{package.__name__}.")
        if inside in without:
            continue
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError:  # torch is optional
            continue
        for name, value in vars(module).items():
            # A decorated function is wrapped in one of another module, and keeps the name of its own.
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                found[f"{inside}.{name}"] = value
    return found


DRAWING = public(attnmath.figures, without=("drawing", "lettering"))
#: What attnlab measures, but for the numeric modules of `hostile`, and for what its commands do beside their measuring.
MEASURING = public(attnlab, without=(*numeric.LABORATORY, *ELSEWHERE))


def scalars() -> dict[str, Any]:
    """Hostile values of every kind."""
    found = {
        "None": None, "text": "abc", "blank": "", "mathematics": r"$\nosuchsymbol$", "3": 3, "0": 0, "-1": -1,
        "1.5": 1.5, "True": True, "nan": np.nan, "inf": np.inf, "1e308": 1e308, "1e-320": 1e-320, "1j": 1j,
        "object": object(), "[]": [], "{}": {}, "{3: 1}": {3: 1}, "{None: ...}": {None: [1.0, 2.0]}, "[nan]": [np.nan],
        "two with nan": [1.0, np.nan], "two with inf": [1.0, np.inf], "two texts": ["a", "b"], "two": [1.0, 2.0],
        "Chinese": "我爱你", "two dollars": "$$", "tokens": ["我", "$$"],
        "three": [1.0, 2.0, 3.0], "two huge": [1e308, -1e308], "two negative": [-1.0, -2.0], "two zero": [0.0, 0.0],
        "ragged": [[1.0], [1.0, 2.0]], "matrix": np.ones((2, 2)), "rank 3": np.ones((2, 2, 2)),
        "empty": np.ones((0, 2)), "masked": np.ma.masked_array([1.0, 2.0], [True, False]), "Estimate": TWO,
        "another Estimate": Estimate(np.ones(3), np.ones(3)), "one number": Estimate(1.0, 0.1),
        "negative Estimate": Estimate(-np.ones(2), np.ones(2)), "a function": len, "a class": int,
    }  # fmt: skip
    try:
        import torch
    except ImportError:
        return found
    return found | {"tensor with gradient": torch.ones(2, requires_grad=True), "bfloat16": torch.ones(2).bfloat16()}


HOSTILE = scalars()


def hostile(ordinary: Any) -> Iterator[tuple[str, Any]]:
    """Hostile values in place of an ordinary one, and within it where it is a mapping."""
    if isinstance(ordinary, str):  # words and choices: the many kinds of arrays differ in nothing
        yield from (
            (name, HOSTILE[name])
            for name in ("None", "text", "blank", "mathematics", "Chinese", "two dollars", "3", "nan", "[]", "object")
        )
        return
    yield from HOSTILE.items()
    if isinstance(ordinary, Mapping):
        (label, item), *_ = ordinary.items()
        yield from ((f"{{{label!r}: {name}}}", {**ordinary, label: value}) for name, value in HOSTILE.items())
        yield "another label", {**ordinary, "more": item}
        yield "label 3", {3: item}
        yield "label None", {None: item}
        yield "a label in Chinese", {"我爱你": item}
        yield "only a hidden label", {"_": item}
        yield "a label that cannot be typeset", {r"$\frac$": item}


def fault(call: Callable[[], Any], names: list[str], untouched: Callable[[], bool] = lambda: True) -> str | None:
    """What is wrong with a call, or None: it raises an error that names one of the arguments, or returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "labels: no installed font")  # as promised, where no font has the characters
        try:
            call()
        except (TypeError, ValueError) as error:
            if not re.match(rf"({'|'.join(names)})(\[.*\])?[:,]", str(error)):
                return f"obscure: {type(error).__name__}: {error}"
            return None if untouched() else f"draws before it checks: {error}"
        except Exception as error:
            return f"obscure: {type(error).__name__}: {error}"
    return None


def parameters_of(function: Callable[..., Any]) -> set[str]:
    """The names of the parameters that a table gives: all but the Axes, and what is passed on."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.name != "ax" and p.kind is not p.VAR_KEYWORD}
