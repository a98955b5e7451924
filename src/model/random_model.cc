#include "model/random_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/str_cat.h"
#include "gguf/writer.h"
#include "model/arch/arch.h"

namespace stoker::model {
namespace {

/// Numbers that are the same everywhere: splitmix64, uniform with a given standard deviation.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  float uniform(float deviation) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    const float unit = static_cast<float>(z >> 40) * 0x1p-24f - 0.5f;
    return unit * 3.4641016f * deviation;
  }

 private:
  uint64_t state_;
};

class RandomModelWriter {
 public:
  RandomModelWriter(const ModelConfig& config, uint64_t seed)
      : config_(config), random_(seed), writer_(config.arch->name) {}

  Result<std::string> write() {
    add_keys();
    for (const GlobalTensorSpec& spec : config_.arch->globals) {
      if (is_optional(spec.need) || !may_have(spec.need, config_, 0)) continue;
      const bool matrix = std::holds_alternative<Matrix Weights::*>(spec.slot);
      std::vector<int64_t> sizes = shape_of(spec.rows, spec.cols, matrix, 0);
      if (spec.stack != Dim::kOne) sizes.insert(sizes.begin(), resolve(spec.stack, config_, 0));
      STOKER_TRY_STATUS(add(std::string(spec.name), matrix, std::move(sizes)));
    }
    for (int64_t layer = 0; layer < config_.n_layers; ++layer) {
      for (const TensorSpec& spec : config_.arch->tensors) {
        if (is_optional(spec.need) || !may_have(spec, config_, layer)) continue;
        if (spec.need == Need::kWithGate) continue;  // It has the form without.
        const bool stacked = std::holds_alternative<ExpertMatrix LayerWeights::*>(spec.slot) ||
                             std::holds_alternative<ExpertVector LayerWeights::*>(spec.slot);
        const bool matrix = std::holds_alternative<ExpertMatrix LayerWeights::*>(spec.slot) ||
                            std::holds_alternative<Matrix LayerWeights::*>(spec.slot);
        const int64_t n_stacked = stacked ? config_.n_experts : resolve(spec.stack, config_, layer);
        std::vector<int64_t> sizes = shape_of(spec.rows, spec.cols, has_cols(spec), layer);
        if (n_stacked > 1) sizes.insert(sizes.begin(), n_stacked);
        const std::string name = str_cat("blk.", layer, ".", spec.name);
        STOKER_TRY_STATUS(spec.need == Need::kHashed ? add_ids(name, std::move(sizes))
                                                     : add(name, matrix, std::move(sizes)));
      }
    }
    return writer_.bytes();
  }

 private:
  /// Only the first of a key counts.
  void u32(std::string_view key, int64_t value) {
    if (!written_.insert(std::string(key)).second) return;
    writer_.add_u32(str_cat(config_.arch->name, ".", key), static_cast<uint32_t>(value));
  }
  void f32(std::string_view key, float value) {
    if (written_.insert(std::string(key)).second) writer_.add_f32(str_cat(config_.arch->name, ".", key), value);
  }

  void list(std::string_view key, std::vector<int64_t> values) {
    gguf::Array array{.element = gguf::ValueType::kI32, .ints = std::move(values), .floats = {}, .strings = {}};
    writer_.add(str_cat(config_.arch->name, ".", key), {gguf::ValueType::kArray, std::move(array)});
  }

  /// Layers without attention are known by a list of their own, or by key-value heads that they do not have.
  void add_layer_kinds() {
    const std::vector<int64_t>& recurrent = config_.recurrent_layers.values;
    const auto has_list = [](const KeySpec& key) { return key.key == "attention.recurrent_layers"; };
    const bool own_list = std::any_of(config_.arch->keys.begin(), config_.arch->keys.end(), has_list);
    if ((recurrent.empty() && config_.stateless_layers.values.empty()) || own_list) {
      u32("attention.head_count_kv", config_.n_kv_heads[0]);
      if (!recurrent.empty()) list("attention.recurrent_layers", recurrent);
      return;
    }
    std::vector<int64_t> heads;
    heads.reserve(static_cast<size_t>(config_.n_layers));
    for (int64_t layer = 0; layer < config_.n_layers; ++layer) {
      const bool none = config_.is_recurrent(layer) || config_.is_stateless(layer);
      heads.push_back(none ? 0 : config_.n_kv_heads[layer]);
    }
    list("attention.head_count_kv", std::move(heads));
  }

  void reals(std::string_view key, const std::vector<float>& values) {
    gguf::Array array{
        .element = gguf::ValueType::kF32, .ints = {}, .floats = {values.begin(), values.end()}, .strings = {}};
    writer_.add(str_cat(config_.arch->name, ".", key), {gguf::ValueType::kArray, std::move(array)});
  }

  /// Of layers with rows that stand for several positions, and of those whose activations are limited.
  void add_compression() {
    if (!config_.gate_sparsity.empty()) reals("activation_sparsity_scale", config_.gate_sparsity);
    if (!config_.expert_limit.empty()) reals("swiglu_clamp_exp", config_.expert_limit);
    if (!config_.shared_limit.empty()) reals("swiglu_clamp_shexp", config_.shared_limit);
    if (config_.ratios.empty()) return;
    list("attention.compress_ratios", config_.ratios);
  }

  void add_keys() {
    add_family_keys();
    u32("block_count", config_.n_layers);
    u32("context_length", config_.context_length);
    u32("embedding_length", config_.dim);
    if (config_.ff_dim.values.size() > 1) {
      list("feed_forward_length", config_.ff_dim.values);
    } else {
      u32("feed_forward_length", config_.ff_dim[0]);
    }
    u32("attention.head_count", config_.n_heads[0]);
    add_layer_kinds();
    if (!config_.rope_sections.empty()) list("rope.dimension_sections", config_.rope_sections);
    u32("attention.key_length", config_.k_dim);
    u32("attention.value_length", config_.v_dim);
    u32("rope.dimension_count", config_.rope_dims);
    f32(config_.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", config_.norm_eps);
    f32("rope.freq_base", config_.rope_base);
    if (!config_.xielu.empty()) {
      const XieluKeys& p = config_.xielu[0];
      writer_.add_f32("xielu.alpha_p", static_cast<float>(p.alpha_p));
      writer_.add_f32("xielu.alpha_n", static_cast<float>(p.alpha_n));
      writer_.add_f32("xielu.beta", static_cast<float>(p.beta));
      writer_.add_f32("xielu.eps", static_cast<float>(p.eps));
    }
    if (config_.any_sliding() && config_.ratios.empty()) {
      list("attention.sliding_window_pattern", {config_.sliding.begin(), config_.sliding.end()});
    }
    add_compression();
  }

  void add_family_keys() {
    for (const KeySpec& spec : config_.arch->keys) {
      if (spec.key == "rope.dimension_count") continue;  // among the common ones
      if (auto number = std::get_if<int64_t ModelConfig::*>(&spec.field)) u32(spec.key, config_.*(*number));
      if (auto flag = std::get_if<bool ModelConfig::*>(&spec.field)) {
        writer_.add(str_cat(config_.arch->name, ".", spec.key), {gguf::ValueType::kBool, config_.*(*flag)});
      }
      if (auto number = std::get_if<float ModelConfig::*>(&spec.field);
          number && config_.*(*number) >= static_cast<float>(spec.min)) {
        f32(spec.key, config_.*(*number));
      }
    }
  }

  std::vector<int64_t> shape_of(Dim rows, Dim cols, bool has_columns, int64_t layer) const {
    std::vector<int64_t> sizes{resolve(rows, config_, layer)};
    if (has_columns) sizes.push_back(resolve(cols, config_, layer));
    return sizes;
  }

  /// Numbers of experts.
  Status add_ids(const std::string& name, std::vector<int64_t> shape) {
    std::vector<int32_t> ids(static_cast<size_t>(shape[0] * shape[1]));
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<int32_t>(i * 7 % static_cast<size_t>(config_.n_experts));
    return writer_.add_tensor(name, gguf::TensorType::kI32, std::move(shape), std::as_bytes(std::span(ids)));
  }

  Status add(const std::string& name, bool matrix, std::vector<int64_t> shape) {
    int64_t n = 1;
    for (int64_t size : shape) n *= size;
    std::vector<float> values(static_cast<size_t>(n));
    const float deviation = matrix ? 1.0f / std::sqrt(static_cast<float>(shape.back())) : 0.1f;
    // What decays must not grow.
    const float mean = matrix ? 0.0f : name.ends_with(".ssm_a") ? -1.0f : 1.0f;
    for (float& value : values) value = mean + random_.uniform(deviation);
    return writer_.add_tensor(name, gguf::TensorType::kF32, std::move(shape), std::as_bytes(std::span(values)));
  }

  const ModelConfig& config_;
  Random random_;
  gguf::Writer writer_;
  std::set<std::string> written_;
};

/// Of the layers before the last, which has attention, one at least is a feed-forward block.
void place_stateless(ModelConfig& config, int64_t width) {
  std::vector<int64_t>& flags = config.stateless_layers.values;
  flags.resize(static_cast<size_t>(config.n_layers));
  flags.back() = 0;
  if (flags.size() > 1 && std::find(flags.begin(), flags.end(), 1) == flags.end()) {
    flags[0] = 1;
    if (!config.recurrent_layers.values.empty()) config.recurrent_layers.values[0] = 0;
  }
  if (!config.linear_layers.values.empty()) config.linear_layers.values = flags;  // all of those
  config.ff_dim.values.clear();
  for (const int64_t flag : flags) config.ff_dim.values.push_back(flag ? width : 0);
}

}  // namespace

Result<std::string> random_model(ModelConfig config, int64_t n_layers, int64_t vocab, uint64_t seed) {
  if (n_layers < 1 || n_layers > 64 || vocab < 1 || vocab > 65536 || !config.arch || config.dim < 1) {
    return Error{ErrorCode::kInvalidArgument, str_cat("a random model of ", n_layers, " layers and ", vocab,
                                                      " tokens; wanted 1 to 64 and 1 to 65536")};
  }
  config.n_layers = config.n_file_layers = n_layers;
  config.n_shared_kv = 0;
  config.sliding.resize(static_cast<size_t>(n_layers));
  for (std::vector<float>* limits : {&config.expert_limit, &config.shared_limit, &config.gate_sparsity}) {
    if (!limits->empty()) limits->resize(static_cast<size_t>(n_layers));
  }
  if (!config.ratios.empty()) config.ratios.resize(static_cast<size_t>(n_layers));
  if (config.attention_interval > n_layers) config.attention_interval = n_layers;
  if (std::vector<int64_t>& flags = config.recurrent_layers.values; !flags.empty()) {
    flags.resize(static_cast<size_t>(n_layers), 1);
    flags.back() = 0;
  }
  const int64_t width = config.ff_dim.max();
  for (PerLayer* sizes : {&config.n_heads, &config.n_kv_heads, &config.ff_dim}) sizes->values.resize(1);
  if (!config.stateless_layers.values.empty()) place_stateless(config, width);
  config.n_vocab = vocab;
  return RandomModelWriter(config, seed).write();
}

}  // namespace stoker::model
