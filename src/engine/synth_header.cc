#include "engine/synth_header.h"

#include <algorithm>

#include "base/str_cat.h"
#include "model/arch/arch.h"

namespace stoker::engine {
namespace {

constexpr int kBytes = 256;
constexpr std::string_view kMerges[] = {
    "t h",      "th e",     "a n",      "i n",       "e r",        "o n",      "r e", "\u0120 t",
    "\u0120 a", "e n",      "o r",      "e s",       "i s",        "t i",      "a t", "an d",
    "in g",     "o u",      "l l",      "\u0120t h", "\u0120th e", "\u0120 s", "e d", "\u0120 w",
    "\u0120 o", "\u0120 b", "\u0120 f", "\u0120 c",  "\u0120 m",   "a r",
};

/// The letter that stands for a byte in byte-level vocabularies: itself where it prints, else one of 256 and up.
std::string letter_of(int byte) {
  const auto prints = [](int b) { return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad); };
  int code = byte;
  if (!prints(byte)) {
    code = kBytes;
    for (int b = 0; b < byte; ++b) code += prints(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

/// The family decides what its norms are.
std::string_view norm_epsilon_key(const SynthShape& shape) {
  model::ModelConfig config;
  const auto arch = model::find_arch(shape.arch);
  if (arch) (*arch)->defaults(config);
  return config.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
}

gguf::Array list_of(const SynthKey& key, int64_t n_layers) {
  gguf::Array list{.element = gguf::ValueType::kI32, .ints = {}, .floats = {}, .strings = {}};
  if (const auto* numbers = std::get_if<std::span<const int64_t>>(&key.value)) {
    const bool of_axes = key.key == "rope.dimension_sections";
    const size_t n = of_axes ? numbers->size() : static_cast<size_t>(n_layers);
    for (size_t i = 0; i < n; ++i) list.ints.push_back((*numbers)[i % numbers->size()]);
    return list;
  }
  const auto [period, value] = std::get<SynthLayers>(key.value);
  for (int64_t layer = 1; layer <= n_layers; ++layer) {
    list.ints.push_back(layer % period == 0 || layer == n_layers ? value : 0);
  }
  return list;
}

}  // namespace

void add_synth_keys(gguf::Writer& writer, const SynthShape& shape, int64_t n_layers) {
  const SynthKey sizes[] = {{"block_count", n_layers},
                            {"context_length", shape.context_length},
                            {"embedding_length", shape.dim},
                            {"feed_forward_length", shape.ff_dim},
                            {"attention.head_count", shape.n_heads},
                            {"attention.head_count_kv", shape.n_kv_heads},
                            {"attention.key_length", shape.head_dim},
                            {"attention.value_length", shape.head_dim},
                            {norm_epsilon_key(shape), shape.norm_eps},
                            {"rope.dimension_count", shape.head_dim},
                            {"rope.freq_base", shape.rope_base},
                            {"vocab_size", shape.n_vocab}};
  const auto add = [&](const SynthKey& key) {
    const bool bare = key.key.starts_with("xielu.");  // without the architecture
    const std::string name = bare ? std::string(key.key) : str_cat(shape.arch, ".", key.key);
    if (const auto* integer = std::get_if<int64_t>(&key.value)) {
      writer.add_u32(name, static_cast<uint32_t>(*integer));
    } else if (const auto* real = std::get_if<double>(&key.value)) {
      writer.add_f32(name, static_cast<float>(*real));
    } else if (const auto* flag = std::get_if<bool>(&key.value)) {
      writer.add_bool(name, *flag);
    } else if (const auto* text = std::get_if<std::string_view>(&key.value)) {
      writer.add_string(name, std::string(*text));
    } else {
      writer.add(name, {gguf::ValueType::kArray, list_of(key, n_layers)});
    }
  };
  for (const SynthKey& key : sizes) {
    const auto same = [&](const SynthKey& other) { return other.key == key.key; };
    if (std::none_of(shape.keys.begin(), shape.keys.end(), same)) add(key);
  }
  for (const SynthKey& key : shape.keys) add(key);
}

void add_synth_vocabulary(gguf::Writer& writer, const SynthShape& shape) {
  const auto n = static_cast<size_t>(shape.n_vocab);
  std::vector<std::string> tokens, merges;
  tokens.reserve(n);
  for (int byte = 0; byte < kBytes; ++byte) tokens.push_back(letter_of(byte));
  for (const std::string_view merge : kMerges) {
    const size_t blank = merge.find(' ');
    tokens.push_back(str_cat(merge.substr(0, blank), merge.substr(blank + 1)));
    merges.emplace_back(merge);
  }
  std::vector<int32_t> types(n, 3);  // control
  std::fill_n(types.begin(), tokens.size(), 1);
  while (tokens.size() + 1 < n) tokens.push_back(str_cat("<|", tokens.size(), "|>"));
  tokens.emplace_back("<|end|>");
  const auto last = static_cast<uint32_t>(n - 1);
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", std::string(shape.pre));
  writer.add_strings("tokenizer.ggml.tokens", std::move(tokens));
  writer.add_i32s("tokenizer.ggml.token_type", std::move(types));
  writer.add_strings("tokenizer.ggml.merges", std::move(merges));
  writer.add_u32("tokenizer.ggml.bos_token_id", last);
  writer.add_u32("tokenizer.ggml.eos_token_id", last);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
}

uint64_t synth_vocabulary_bytes(const SynthShape& shape) {
  // A string of its own and its type, twice while they are handed over, and their place in the header as it grows.
  constexpr uint64_t kPerToken = sizeof(std::string) + 2 * sizeof(int64_t) + 2 * 24;
  return static_cast<uint64_t>(shape.n_vocab) * kPerToken;
}

}  // namespace stoker::engine
