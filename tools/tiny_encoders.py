"""Writes tiny models of families that answer with vectors; tiny_model.py makes them with the others."""
import string
from dataclasses import dataclass

from tiny_writer import ModelWriter, Shape

MEAN, FIRST, LAST = 1, 2, 3
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = "the of and to a in is cat dog sat on mat river bank money ing ed er s able un".split()


@dataclass(frozen=True)
class Encoder(Shape):
    n_kv_heads: int = 6
    context: int = 160
    pooling: int = MEAN
    gate: str = ""  # "" none, "two" matrices, "fused" in one
    token_types: int = 2
    n_experts: int = 0  # in every second layer
    dense: int = 0  # width of what pooled vectors go through
    layer_norm: bool = True


def wordpiece():
    """(texts, kinds): special tokens, then letters, digits, punctuation and words, each for a word's begin and the rest."""
    plain = [*string.ascii_lowercase, *string.digits, *string.punctuation, *WORDS]
    plain = list(dict.fromkeys(plain))
    texts = [*SPECIAL, *("▁" + word for word in plain), *plain]
    return texts, [3] * len(SPECIAL) + [1] * (len(texts) - len(SPECIAL))


N_WORDPIECE = len(wordpiece()[0])


class EncoderWriter(ModelWriter):
    """spec: Encoder"""

    def keys(self):
        s = self.shape
        keys = {
            "context_length": s.context,
            "embedding_length": s.dim,
            "block_count": s.n_layers,
            "feed_forward_length": s.ff_dim,
            "attention.head_count": s.n_heads,
            f"attention.layer_norm_{'' if s.layer_norm else 'rms_'}epsilon": s.norm_eps,
            "attention.causal": False,
            "pooling_type": s.pooling,
        }
        if s.n_kv_heads != s.n_heads:
            keys["attention.head_count_kv"] = s.n_kv_heads
        if s.head_dim * s.n_heads != s.dim:
            keys |= {"attention.key_length": s.head_dim, "attention.value_length": s.head_dim}
        if s.arch not in ("bert", "jina-bert-v2"):
            keys["rope.freq_base"] = s.rope_base
        if s.n_experts:
            keys |= {"expert_count": s.n_experts, "expert_used_count": 2, "moe_every_n_layers": 2}
        if s.dense:
            keys |= {"dense_2_feat_in": s.dim, "dense_2_feat_out": s.dense}
            keys |= {"dense_3_feat_in": s.dense, "dense_3_feat_out": s.dim}
        for key, value in (keys | s.keys).items():
            self.key(f"{s.arch}.{key}", value)
        self.file.add_token_type_count(s.token_types)

    def vocabulary(self):
        if self.shape.n_vocab != N_WORDPIECE:
            return super().vocabulary()
        texts, kinds = wordpiece()
        self.file.add_tokenizer_model("bert")
        self.file.add_token_list(texts)
        self.file.add_token_types(kinds)
        self.file.add_pad_token_id(0)
        self.file.add_unk_token_id(1)
        self.file.add_bos_token_id(2)
        self.file.add_sep_token_id(3)
        self.file.add_mask_token_id(4)

    def biased_norm(self, name):
        self.norm(name, self.shape.dim)
        if self.is_post():
            self.vector(name + ".bias", self.shape.dim, std=0.2)

    def is_post(self):
        """Norms behind the blocks."""
        return self.shape.arch not in ("modern-bert", "gemma-embedding")

    def tensors(self):
        s, gemma = self.shape, self.shape.arch == "gemma-embedding"
        self.table("token_embd.weight", 0.12 if gemma else 0.5)
        if s.arch == "bert":
            self.random_f32("position_embd.weight", s.context, s.dim, std=0.3)
        if self.is_post():
            self.random_f32("token_types.weight", s.token_types, s.dim, std=0.3)
        else:
            self.norm("output_norm", s.dim)
        if not gemma:
            self.biased_norm("token_embd_norm")
        if s.dense:
            self.linear("dense_2", s.dense, s.dim)
            self.linear("dense_3", s.dim, s.dense)
        for layer in range(s.n_layers):
            self.layer(f"blk.{layer}.", layer, gemma)

    def layer(self, block, layer, gemma):
        s, heads = self.shape, self.shape.n_heads * self.shape.head_dim
        kv = s.n_kv_heads * s.head_dim
        if not self.is_post() and (gemma or layer > 0):
            self.norm(block + "attn_norm", s.dim)
        if s.fused_qkv:
            self.linear(block + "attn_qkv", heads + 2 * kv, s.dim, bias="attention")
        else:
            for name, n_out in (("q", heads), ("k", kv), ("v", kv)):
                self.linear(block + "attn_" + name, n_out, s.dim, bias="attention")
        self.linear(block + "attn_output", s.dim, heads, bias="attention")
        if gemma:
            for name in ("attn_q_norm", "attn_k_norm"):
                self.norm(block + name, s.head_dim)
            for name in ("post_attention_norm", "post_ffw_norm"):
                self.norm(block + name, s.dim)
        if self.is_post():
            self.biased_norm(block + "attn_output_norm")
            self.biased_norm(block + "layer_output_norm")
        else:
            self.norm(block + "ffn_norm", s.dim)
        if s.n_experts and layer % 2 == 1:
            self.random_f32(block + "ffn_gate_inp.weight", s.n_experts, s.dim, std=0.2)
            self.weight(block + "ffn_up_exps.weight", s.n_experts, s.ff_dim, s.dim)
            self.weight(block + "ffn_down_exps.weight", s.n_experts, s.dim, s.ff_dim)
            return
        if s.gate == "two":
            self.linear(block + "ffn_gate", s.ff_dim, s.dim)
        self.linear(block + "ffn_up", (2 if s.gate == "fused" else 1) * s.ff_dim, s.dim, bias="" if s.gate else "up")
        self.linear(block + "ffn_down", s.dim, s.ff_dim, bias="down")


def bert(**options):
    options = {"n_layers": 3, "n_vocab": N_WORDPIECE, "biases": ("attention", "up", "down")} | options
    return Encoder("bert", **options)


WINDOW = {"attention.sliding_window": 12}
ENCODERS = {
    "bert": bert(),
    "bert-cls": bert(pooling=FIRST, fused_qkv=True),
    "bert-f16": bert(types=(("", "F16"),)),
    "bert-q8_0": bert(types=(("", "Q8_0"),)),
    "nomic-bert": Encoder("nomic-bert", n_layers=3, gate="two", fused_qkv=True, rope_base=1000.0, n_vocab=N_WORDPIECE),
    "nomic-bert-moe": Encoder(
        "nomic-bert-moe", n_experts=6, fused_qkv=True, biases=("attention", "up", "down"), n_vocab=N_WORDPIECE
    ),
    "jina-bert-v2": Encoder(
        "jina-bert-v2", n_layers=3, gate="two", biases=("attention", "down"), n_vocab=N_WORDPIECE, context=512
    ),
    "jina-bert-v2-fused": Encoder("jina-bert-v2", n_layers=2, gate="fused", pooling=LAST, biases=("attention", "down"), token_types=1),
    "modern-bert": Encoder(
        *("modern-bert", 7),
        gate="fused",
        fused_qkv=True,
        pooling=FIRST,
        rope_base=16000.0,
        keys=WINDOW | {"rope.freq_base_swa": 1000.0},
    ),
    "modern-bert-silu": Encoder(
        *("modern-bert", 4),
        gate="fused",
        fused_qkv=True,
        rope_base=16000.0,
        keys={"attention.sliding_window": 13, "hidden_activation": "silu"},
    ),
    "gemma-embedding": Encoder(
        *("gemma-embedding", 7),
        n_kv_heads=2,
        head_dim=24,
        gate="two",
        layer_norm=False,
        rope_base=16000.0,
        keys=WINDOW,
        dense=144,
    ),
}
