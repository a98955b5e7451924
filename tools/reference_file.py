"""Metadata and weights of a GGUF file in float64, for reference_model.py."""
import gguf
import numpy as np
from gguf.quants import dequantize

ROWS_AT_ONCE = 4096  # of a weight matrix in float64
KEEP_BELOW = 50_000_000  # weights: smaller models keep theirs in float64
# Read elsewhere, or without influence on the result.
IGNORED_KEYS = {"vocab_size", "embedding_length", "block_count", "feed_forward_length", "expert_feed_forward_length"}
IGNORED_KEYS |= {"expert_shared_feed_forward_length", "expert_shared_count", "moe_latent_size"}
IGNORED_KEYS |= {"rope.dimension_sections", "n_deepstack_layers"}  # text has the same position on all axes


class Unsupported(Exception):
    """The file has something that this reference does not compute."""


class File:
    """Metadata below "{architecture}." and tensors, remembering what was read."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        keys = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("tokenizer.")}
        self.architecture = keys["general.architecture"]
        prefix = self.architecture + "."
        self.bare_keys = keys
        self.keys = {k.removeprefix(prefix): v for k, v in keys.items() if k.startswith(prefix)}
        self.tensors = {t.name: t for t in reader.tensors}
        self.n_weights = sum(int(t.n_elements) for t in reader.tensors)
        self.n_vocab = int(self.tensors["token_embd.weight"].shape[1])
        self.keys_read, self.tensors_read, self.kept = set(IGNORED_KEYS), set(), {}

    def get(self, key, *default):
        self.keys_read.add(key)
        if key not in self.keys and not default:
            raise Unsupported(f"the file lacks the key {self.architecture}.{key}")
        return self.keys.get(key, *default)

    def rows(self, name, which):
        """Rows of a matrix, dequantized to float64; which: a slice or indices."""
        self.tensors_read.add(name)
        tensor = self.tensors[name]
        data = np.ascontiguousarray(tensor.data[which])
        return dequantize(data, tensor.tensor_type).astype(np.float64)

    def tensor(self, name):
        """A whole tensor in float64, outermost dimension first; None when absent."""
        if name not in self.tensors:
            return None
        if name not in self.kept:
            shape = [int(n) for n in reversed(self.tensors[name].shape)]
            values = self.rows(name, slice(None)).reshape(shape)
            if self.n_weights > KEEP_BELOW and values.ndim > 1:
                return values
            self.kept[name] = values
        return self.kept[name]

    def linear(self, x, name):
        """x W^T + b."""
        weight, bias = name + ".weight", self.tensor(name + ".bias")
        if weight not in self.tensors:
            raise Unsupported(f"the file lacks the tensor {weight}")
        if self.n_weights <= KEEP_BELOW:
            y = x @ self.tensor(weight).T
        else:
            n_out = int(self.tensors[weight].shape[1])
            starts = range(0, n_out, ROWS_AT_ONCE)
            y = np.concatenate([x @ self.rows(weight, slice(i, i + ROWS_AT_ONCE)).T for i in starts], axis=1)
        return y if bias is None else y + bias

    def check_all_read(self, n_layers):
        """Layers from n_layers on predict further tokens and take no part."""
        drafts = {name for name in self.tensors if name.startswith("blk.") and int(name.split(".")[1]) >= n_layers}
        keys, tensors = set(self.keys) - self.keys_read, set(self.tensors) - self.tensors_read - drafts
        if keys or tensors:
            raise Unsupported(f"not computed: keys {sorted(keys)}, tensors {sorted(tensors)}")
