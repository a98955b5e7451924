// The shapes of published models, as data: what `stoker synth` can write.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "gguf/types.h"

namespace stoker::engine {

/// A list of numbers, one for each layer: `value` for each so many-th and for the last, 0 for the others.
struct SynthLayers {
  int64_t period, value = 1;
};
/// A metadata key below "{architecture}.".
struct SynthKey {
  std::string_view key;
  /// A list of layers is repeated until each has an entry.
  std::variant<int64_t, double, std::string_view, bool, std::span<const int64_t>, SynthLayers> value;
};

/// One model. Its tensors are those that the family's table requires, and `extra`.
struct SynthShape {
  std::string_view name;
  std::string_view arch;
  std::string_view pre;  ///< The pre-tokenizer of the original.
  int64_t n_vocab;
  int64_t n_layers, dim, ff_dim;
  int64_t n_heads, n_kv_heads, head_dim;
  int64_t context_length;
  double rope_base;
  double norm_eps;
  std::span<const SynthKey> keys{};           ///< Further ones, or in place of those above.
  std::span<const std::string_view> extra{};  ///< Optional tensors that it has; names of a layer's without "blk.N.".
  std::string_view type = "q4_k_m";           ///< Of which the weights are unless another is asked for.
};

/// Published ones first, then one "tiny-ARCHITECTURE" for every family that runs.
std::span<const SynthShape> synth_shapes();
/// kInvalidArgument: lists the known ones.
Result<const SynthShape*> find_synth_shape(std::string_view name);

/// Which type a tensor gets: that of the first rule whose part is in its name. "table." stands before the names of the
/// embedding and the output matrix, "finer." before those of the layers on which quantizers spend more.
struct SynthRule {
  std::string_view part;
  gguf::TensorType type;
};
struct SynthType {
  std::string_view name;
  std::span<const SynthRule> rules;
  std::span<const SynthRule> with_experts{};  ///< In place of `rules` for models with experts; empty: the same.
};
std::span<const SynthType> synth_types();
/// kInvalidArgument: lists the known ones.
Result<const SynthType*> find_synth_type(std::string_view name);

/// The type of a matrix whose rows have n_in values; rows that are no whole blocks get a type with smaller ones.
gguf::TensorType synth_type_of(const SynthType& type, std::string_view tensor, int64_t n_in, int64_t n_layers,
                               bool has_experts);

}  // namespace stoker::engine
