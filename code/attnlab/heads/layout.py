"""What of a model directory can be read exactly: its settings and its parameters, each known by name.

`attnlab.heads.encoder` computes one forward pass, that of BERT; RoBERTa's differs in its positions alone. Whatever may
ask for another one is refused: an unknown setting or parameter as well, since nobody can tell what it changes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: Settings that must have these values, which they have where they are left out.
_FIXED: dict[str, Any] = {
    "hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False, "is_encoder_decoder": False,
    "add_cross_attention": False, "pruned_heads": {},
}  # fmt: skip
_SIZES = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size")
#: The rows of the tables of embeddings, by the setting that may give them.
_ROWS = {"vocab_size": "word", "max_position_embeddings": "position", "type_vocab_size": "token_type"}
_READ = {"model_type", "architectures", "layer_norm_eps", "pad_token_id", *_FIXED, *_SIZES, *_ROWS}
#: Settings that change nothing of the queries and keys of a text: of training, of heads on top, of the generation of
#: text, of what is returned, of memory, and of the file itself.
_WITHOUT_EFFECT = {
    "attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout", "initializer_range",
    "gradient_checkpointing", "use_cache", "tie_word_embeddings", "chunk_size_feed_forward", "dtype", "torch_dtype",
    "finetuning_task", "problem_type", "id2label", "label2id", "num_labels", "_num_labels", "task_specific_params",
    "output_attentions", "output_hidden_states", "output_past", "return_dict", "torchscript",
    "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "mask_token_id", "tokenizer_class",
    "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
    "pooler_type", "sbert_ce_default_activation_function", "sentence_transformers",
    "name_or_path", "_name_or_path", "_commit_hash", "_attn_implementation_autoset", "transformers_version",
}  # fmt: skip
#: Parameters that queries and keys do not depend on: numbers of positions, and the heads on top of the encoder.
_UNREAD = re.compile(r"embeddings\.(position_ids|token_type_ids)|(pooler|cls|lm_head|classifier|qa_outputs)\..+")


@dataclass(frozen=True)
class _Family:
    """Models of one model_type: their classes, how their parameters begin, and where their positions do.

    after_padding : positions count from the number of the padding token on, as RoBERTa's do.
    """

    classes: tuple[str, ...]
    prefix: str
    after_padding: bool


#: What stands on top of the encoder, by the ends of the names of the classes that transformers has.
_TOPS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForMultipleChoice", "ForTokenClassification",
         "ForQuestionAnswering")  # fmt: skip
_BERT = (*(f"Bert{top}" for top in _TOPS), "BertForPreTraining", "BertForNextSentencePrediction", "BertLMHeadModel")
_ROBERTA, _XLM, _CAMEMBERT = (
    (*(f"{name}{top}" for top in _TOPS), f"{name}ForCausalLM") for name in ("Roberta", "XLMRoberta", "Camembert")
)

FAMILIES = {
    "bert": _Family(_BERT, "bert.", after_padding=False),
    "roberta": _Family(_ROBERTA, "roberta.", after_padding=True),
    "xlm-roberta": _Family(_XLM, "roberta.", after_padding=True),
    "camembert": _Family(_CAMEMBERT, "roberta.", after_padding=True),
}


@dataclass(frozen=True)
class Layout:
    """The sizes of an encoder and how its parameters are called.

    inner : width between the two linear maps after the attention.  epsilon : of its layer norms.
    padding : the number of the padding token where positions count from it on, else None.
    rows : of the tables of embeddings, each None where the settings leave it open.
    prefix : that the names of all parameters may have.
    """

    layers: int
    heads: int
    width: int
    inner: int
    epsilon: float
    padding: int | None
    rows: Mapping[str, int | None]
    prefix: str

    def shapes(self) -> dict[str, tuple[int | None, ...]]:
        """Shape of every parameter that the forward pass reads; None stands for any size."""
        width, inner = self.width, self.inner
        parts = ("self.query", "self.key", "self.value", "output.dense")
        linear = {f"attention.{part}": (width, width) for part in parts}
        linear |= {"intermediate.dense": (inner, width), "output.dense": (width, inner)}
        layers = [f"encoder.layer.{number}" for number in range(self.layers)]
        norms = ["embeddings", *(f"{layer}.{part}" for layer in layers for part in ("attention.output", "output"))]
        shapes: dict[str, tuple[int | None, ...]] = {
            f"embeddings.{kind}_embeddings.weight": (rows, width) for kind, rows in self.rows.items()
        }
        shapes |= {f"{norm}.LayerNorm.{part}": (width,) for norm in norms for part in ("weight", "bias")}
        for layer in layers:
            for part, shape in linear.items():
                shapes |= {f"{layer}.{part}.weight": shape, f"{layer}.{part}.bias": shape[:1]}
        return shapes

    def names(self, given: Iterable[str]) -> dict[str, str]:
        """Return the names of the file by the names of `shapes`; one that is neither read nor known is refused.

        Old files call the two parts of a layer norm gamma and beta.
        """
        given = list(given)
        if self.layers > len(given):  # before as many shapes are made
            raise ValueError(f"directory: expected the parameters of {self.layers} layers, got {len(given)} in all")
        read = self.shapes()
        found: dict[str, str] = {}
        for name in given:
            plain = name.removeprefix(self.prefix)
            plain = plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
            if plain in found:
                raise ValueError(f"directory: expected each parameter once, got {found[plain]} and {name}")
            if plain in read:
                found[plain] = name
            elif not _UNREAD.fullmatch(plain):
                raise ValueError(f"directory: expected the parameters of {self.layers} layers in BERT's layout, "
                                 f"got one more, {name}, and it may change queries and keys")  # fmt: skip
        return found


def layout(config: Mapping[str, Any]) -> Layout:
    """Read the settings of a model (`config.json`); `ValueError` for what cannot be read exactly."""
    if not isinstance(config, Mapping):
        raise TypeError(f"config: expected a mapping from settings to values, got {type(config).__name__}")
    family = _family(config)
    for name, value in _FIXED.items():
        if name in config and config[name] != value:
            raise ValueError(f"directory: config.json: {name}: expected {value!r}, got {config[name]!r}")
    sizes = {name: config.get(name) for name in _SIZES}
    if not all(_whole(value, 1) for value in sizes.values()):
        raise ValueError(f"directory: config.json: expected positive sizes, got {sizes}")
    layers, heads, width, inner = (int(value) for value in sizes.values() if value)
    if width % heads:
        expected = "expected hidden_size to be a multiple of num_attention_heads"
        raise ValueError(f"directory: config.json: {expected}, got {sizes}")
    rows = {kind: config.get(name) for name, kind in _ROWS.items()}
    for name, kind in _ROWS.items():
        if rows[kind] is not None and not _whole(rows[kind], 1):
            raise ValueError(f"directory: config.json: {name}: expected a positive size, got {rows[kind]!r}")
    epsilon = config.get("layer_norm_eps", 1e-12)
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 <= epsilon <= sys.float_info.max:
        raise ValueError(f"directory: expected layer_norm_eps of at least 0 in its config.json, got {epsilon!r}")
    padding = config.get("pad_token_id", 1) if family.after_padding else None
    if family.after_padding and not _whole(padding, 0):
        raise ValueError(f"directory: config.json: pad_token_id: expected the number of a token, got {padding!r}")
    if unknown := sorted(set(config) - _READ - _WITHOUT_EFFECT):
        got = ", ".join(f"{name} = {config[name]!r}" for name in unknown)
        raise ValueError(f"directory: config.json: expected settings that are known to change nothing, got {got}")
    return Layout(layers, heads, width, inner, float(epsilon), padding, rows, family.prefix)


def _family(config: Mapping[str, Any]) -> _Family:
    """Return the family that a model says it is of, by its model_type and by the names of its classes.

    Old models of BERT name no model_type; of RoBERTa's such a one is told by its padding, classes or parameters.
    """
    kind, classes = config.get("model_type", "bert"), config.get("architectures") or []
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(f"directory: config.json: model_type: expected one of {', '.join(FAMILIES)}, got {kind!r}")
    if "model_type" not in config and (padding := config.get("pad_token_id", 0)) != 0:  # RoBERTa's is 1
        expected = f"expected one of {', '.join(FAMILIES)} beside pad_token_id = {padding!r}"
        raise ValueError(f"directory: config.json: model_type: {expected}, got none")
    known = FAMILIES[kind].classes
    if not isinstance(classes, list) or not all(one in known for one in classes):
        expected = f"expected some of {', '.join(known)}"
        raise ValueError(f"directory: config.json: architectures: {expected}, got {classes!r}")
    return FAMILIES[kind]


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
