"""Writes tiny models that rank documents for a query: encoders and a decoder with a head; tiny_model.py makes them with
the others."""
from dataclasses import dataclass

from tiny_dense import qwen3
from tiny_encoders import FIRST, MEAN, N_WORDPIECE, WINDOW, Encoder, EncoderWriter, bert
from tiny_writer import SMALLEST_VOCAB, ModelWriter, Shape

RANK = 4
PROMPT = "<|extra_0|>Is it so?\n<Query>: {query}\n<Document>: {document}<|extra_1|>\n"


@dataclass(frozen=True)
class Head:
    """dense: the layer before the scores."""

    dense: bool = True
    norm: bool = False
    biases: tuple[str, ...] = ("cls", "cls.output")
    out: str = "cls.output"
    labels: tuple[str, ...] = ()


class HeadWriter:
    def tensors(self):
        super().tensors()
        s, head = self.shape, self.head
        if head.dense:
            self.linear("cls", s.dim, s.dim)
        if head.norm:
            self.norm("cls.norm", s.dim)
        self.linear(head.out, max(1, len(head.labels)), s.dim)
        for name in head.biases:
            self.vector(name + ".bias", s.dim if name == "cls" and head.dense else max(1, len(head.labels)), std=0.2)


@dataclass(frozen=True)
class Reranker:
    shape: Shape
    head: Head

    def writer(self, *args):
        base = EncoderWriter if isinstance(self.shape, Encoder) else ModelWriter
        return type("RerankerWriter", (HeadWriter, base), {"head": self.head})(*args)


def modern_bert(**keys):
    return Encoder(
        *("modern-bert", 4), gate="fused", fused_qkv=True, pooling=RANK, rope_base=16000.0, n_vocab=N_WORDPIECE, keys=WINDOW | keys
    )


LABELS = ("yes", "no")
RERANKERS = {
    "bert-rank": Reranker(bert(pooling=RANK, keys={"classifier.output_labels": ["LABEL_0"]}), Head(labels=("LABEL_0",))),
    "bert-rank-plain": Reranker(bert(pooling=RANK, token_types=1), Head(dense=False, biases=("cls.output",))),
    "jina-rank": Reranker(
        Encoder("jina-bert-v2", n_layers=3, gate="two", pooling=RANK, biases=("attention", "down"), n_vocab=N_WORDPIECE, context=512),
        Head(dense=False, out="cls", biases=("cls",)),
    ),
    "modern-bert-rank": Reranker(modern_bert(), Head(norm=True, biases=("cls.output",))),
    "modern-bert-rank-cls": Reranker(modern_bert(**{"classifier.pooling_type": FIRST}), Head(norm=True, biases=())),
    "modern-bert-rank-mean": Reranker(modern_bert(**{"classifier.pooling_type": MEAN}), Head(biases=("cls.output",))),
    "qwen3-rank": Reranker(
        qwen3(
            n_vocab=SMALLEST_VOCAB + 3,
            keys={"pooling_type": RANK, "classifier.output_labels": list(LABELS)},
            bare_keys={"tokenizer.chat_template.rerank": PROMPT},
        ),
        Head(dense=False, biases=(), labels=LABELS),
    ),
}
