#include "model/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/str_cat.h"
#include "model/arch/arch.h"

namespace stoker::model {
namespace {

// The limits are those of the format's reference implementation; they bound every size before it is allocated.
constexpr int64_t kMaxLayers = 512;
constexpr size_t kMaxLabels = 4096;
constexpr double kMaxSize = 1 << 24;
constexpr double kNoLimit = 1e-6;  // what gate and up are cut to, up to which they are not

constexpr KeySpec kCommonKeys[] = {
    {.key = "context_length", .field = &ModelConfig::context_length, .required = true, .min = 1, .max = 1 << 30},
    {.key = "embedding_length", .field = &ModelConfig::dim, .required = true, .min = 1, .max = kMaxSize},
    {.key = "feed_forward_length", .field = &ModelConfig::ff_dim, .required = true, .min = 1, .max = kMaxSize},
    {.key = "attention.head_count", .field = &ModelConfig::n_heads, .required = true, .min = 1, .max = 65536},
    {.key = "attention.head_count_kv", .field = &ModelConfig::n_kv_heads, .min = 1, .max = 65536},
    {.key = "attention.key_length", .field = &ModelConfig::k_dim, .min = 1, .max = 65536},
    {.key = "attention.value_length", .field = &ModelConfig::v_dim, .min = 1, .max = 65536},
    {.key = "rope.dimension_count", .field = &ModelConfig::rope_dims, .min = 0, .max = 65536},
    {.key = "rope.freq_base", .field = &ModelConfig::rope_base, .min = 1e-3, .max = 1e15},
    {.key = "rope.scaling.factor", .field = &ModelConfig::rope_factor, .min = 0, .max = 1e6},
    {.key = "rope.scaling.original_context_length",
     .field = &ModelConfig::rope_original_context,
     .min = 0,
     .max = 1 << 30},
    // In no file: for comparisons with engines that round where the original model does not.
    {.key = "rope.scaling.yarn_truncate", .field = &ModelConfig::yarn_truncate, .min = 0, .max = 1},
    {.key = "pooling_type", .field = &ModelConfig::pooling, .min = 0, .max = 4},
    {.key = "classifier.pooling_type", .field = &ModelConfig::rank_pooling, .min = 1, .max = 3},
    {.key = "rope.scaling.attn_factor", .field = &ModelConfig::rope_attn_factor, .min = 1e-3, .max = 1e3},
};

/// Of norms that subtract the mean, and of those that do not. BERT's is 1e-12, which as f32 is a little less.
constexpr KeySpec kLayerNormEpsilon{
    .key = "attention.layer_norm_epsilon", .field = &ModelConfig::norm_eps, .required = true, .min = 1e-15, .max = 1};
constexpr KeySpec kRmsNormEpsilon{.key = "attention.layer_norm_rms_epsilon",
                                  .field = &ModelConfig::norm_eps,
                                  .required = true,
                                  .min = 1e-15,
                                  .max = 1};

/// Keys that change the result in families which have them. A family of this version that does not read them must not
/// answer as if they were absent.
struct RefusedKey {
  std::string_view key;
  double off, also_off;  ///< The values that change nothing.
  std::string_view what;
};
constexpr RefusedKey kRefused[] = {
    {"expert_count", 0, 1, "mixture-of-experts layers"},
    {"expert_shared_feed_forward_length", 0, 0, "shared experts"},
    {"expert_shared_count", 0, 0, "shared experts"},
    {"expert_group_count", 0, 1, "groups of experts"},
    {"expert_weights_scale", 0, 1, "scaled expert weights"},
    {"leading_dense_block_count", 0, 0, "dense layers before those with experts"},
    {"interleave_moe_layer_step", 0, 1, "dense layers between those with experts"},
    {"attention.clamp_kqv", 0, 0, "clamped q, k and v"},
    {"attention.temperature_scale", 0, 0, "query temperature"},
    {"attention.scale", 0, 0, "an attention scale of its own"},
    {"attention.value_scale", 0, 1, "scaled values"},
    {"logit_scale", 0, 0, "scaled logits"},
    {"residual_scale", 0, 0, "scaled residuals"},
    {"embedding_scale", 0, 0, "scaled embeddings"},
};

/// Reads keys of one file and architecture, overrides first.
class KeyReader {
 public:
  KeyReader(const gguf::File& file, std::string_view arch, const Overrides& overrides)
      : file_(file), prefix_(str_cat(arch, ".")) {
    for (const auto& [key, value] : overrides) {
      overrides_[key.starts_with(prefix_) ? key.substr(prefix_.size()) : key] = value;
    }
  }

  Status read(const KeySpec& spec, ModelConfig& config) {
    const std::string key(spec.key);
    used_.push_back(key);
    if (auto number = std::get_if<int64_t ModelConfig::*>(&spec.field)) {
      STOKER_TRY(std::optional<double> value, real(key, true));
      STOKER_TRY_STATUS(check(spec, value));
      if (value) config.*(*number) = static_cast<int64_t>(*value);
      return Ok{};
    }
    if (auto number = std::get_if<float ModelConfig::*>(&spec.field)) {
      STOKER_TRY(std::optional<double> value, real(key, false));
      STOKER_TRY_STATUS(check(spec, value));
      if (value) config.*(*number) = static_cast<float>(*value);
      return Ok{};
    }
    if (auto flag = std::get_if<bool ModelConfig::*>(&spec.field)) {
      STOKER_TRY(std::optional<bool> value, boolean(key));
      if (!value && spec.required) return missing(spec);
      if (value) config.*(*flag) = *value;
      return Ok{};
    }
    return read_per_layer(spec, config, config.*std::get<PerLayer ModelConfig::*>(spec.field));
  }

  /// A number by the part of its key after the architecture.
  Result<std::optional<double>> real(const std::string& key, bool integral) {
    if (auto it = overrides_.find(key); it != overrides_.end()) {
      double value = 0;
      const char* end = it->second.data() + it->second.size();
      auto parsed = std::from_chars(it->second.data(), end, value);
      if (parsed.ec != std::errc() || parsed.ptr != end || (integral && value != std::floor(value))) {
        return Error{ErrorCode::kInvalidArgument,
                     str_cat("override ", key, "=", it->second, ": not a", integral ? " whole number" : " number")};
      }
      return std::optional<double>(value);
    }
    if (integral) {
      STOKER_TRY(std::optional<int64_t> value, file_.integer(prefix_ + key));
      return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
    }
    return file_.real(prefix_ + key);
  }

  Result<std::optional<bool>> boolean(const std::string& key) {
    const auto it = overrides_.find(key);
    if (it == overrides_.end()) return file_.boolean(prefix_ + key);
    if (it->second == "true" || it->second == "1") return std::optional<bool>(true);
    if (it->second == "false" || it->second == "0") return std::optional<bool>(false);
    return Error{ErrorCode::kInvalidArgument, str_cat("override ", key, "=", it->second, ": not true or false")};
  }

  Result<std::optional<std::string>> text(const std::string& key) {
    used_.push_back(key);
    if (auto it = overrides_.find(key); it != overrides_.end()) return std::optional<std::string>(it->second);
    return file_.string(prefix_ + key);
  }

  /// Whether the file has what makes this layer one that drafts.
  bool has_draft(int64_t layer) const { return file_.find_tensor(str_cat("blk.", layer, ".nextn.eh_proj.weight")); }
  const gguf::Value* find(std::string_view key) const { return file_.find(prefix_ + std::string(key)); }
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  /// A list in the file with a whole number for each layer, or for more; draft layers' are left out.
  Result<std::vector<int64_t>> layer_integers(std::string_view key, const ModelConfig& config) const {
    const gguf::Value* value = find(key);
    const auto* array = value ? std::get_if<gguf::Array>(&value->data) : nullptr;
    if (!array || array->ints.size() < static_cast<size_t>(config.n_layers)) {
      return Error{ErrorCode::kCorrupt,
                   str_cat("key ", prefix_, key, " is ", array ? str_cat("a list of ", array->ints.size()) : "no list",
                           ", wanted a list of ", config.n_layers, " or more whole numbers")};
    }
    return std::vector(array->ints.begin(), array->ints.begin() + config.n_layers);
  }
  /// The same of which 0 is no.
  Result<std::vector<bool>> layer_flags(std::string_view key, const ModelConfig& config) const {
    STOKER_TRY(const std::vector<int64_t> numbers, layer_integers(key, config));
    std::vector<bool> flags(numbers.size());
    for (size_t i = 0; i < flags.size(); ++i) flags[i] = numbers[i] != 0;
    return flags;
  }

  /// An override that no key took is a mistake of whoever gave it.
  Status check_overrides() const {
    for (const auto& [key, value] : overrides_) {
      if (std::find(used_.begin(), used_.end(), key) == used_.end()) {
        return Error{ErrorCode::kInvalidArgument, str_cat("override ", key, ": this architecture reads no such key")};
      }
    }
    return Ok{};
  }

 private:
  Error out_of_range(const KeySpec& spec, double value) const {
    return Error{ErrorCode::kCorrupt,
                 str_cat("key ", prefix_, spec.key, " is ", value, ", outside ", spec.min, " to ", spec.max)};
  }

  Error missing(const KeySpec& spec) const {
    return Error{ErrorCode::kCorrupt, str_cat("required key ", prefix_, spec.key, " is missing")};
  }

  Status check(const KeySpec& spec, std::optional<double> value) const {
    if (!value) {
      if (!spec.required) return Ok{};
      return missing(spec);
    }
    if (!(*value >= spec.min && *value <= spec.max)) return out_of_range(spec, *value);
    return Ok{};
  }

  Status read_per_layer(const KeySpec& spec, const ModelConfig& config, PerLayer& out) {
    const gguf::Value* found = find(spec.key);
    if (!found || !std::holds_alternative<gguf::Array>(found->data) || overrides_.contains(std::string(spec.key))) {
      STOKER_TRY(std::optional<double> value, real(std::string(spec.key), true));
      STOKER_TRY_STATUS(check(spec, value));
      if (value) out.values = {static_cast<int64_t>(*value)};
      return Ok{};
    }
    const auto& array = std::get<gguf::Array>(found->data);
    if (array.ints.size() != static_cast<size_t>(config.n_file_layers)) {
      return Error{ErrorCode::kCorrupt, str_cat("key ", prefix_, spec.key, " has ", array.size(), " entries, wanted ",
                                                config.n_file_layers, " integers, one per layer")};
    }
    for (int64_t layer = 0; layer < config.n_layers; ++layer) {
      const auto value = static_cast<double>(array.ints[static_cast<size_t>(layer)]);
      if (!(value >= spec.min && value <= spec.max)) return out_of_range(spec, value);
    }
    out.values = array.ints;
    return Ok{};
  }

  const gguf::File& file_;
  std::string prefix_;
  Overrides overrides_;
  std::vector<std::string> used_;
};

Status read_layer_counts(KeyReader& keys, ModelConfig& config) {
  STOKER_TRY_STATUS(keys.read(
      {.key = "block_count", .field = &ModelConfig::n_file_layers, .required = true, .min = 1, .max = kMaxLayers},
      config));
  STOKER_TRY_STATUS(keys.read({.key = "nextn_predict_layers",
                               .field = &ModelConfig::n_nextn_layers,
                               .min = 0,
                               .max = static_cast<double>(config.n_file_layers - 1)},
                              config));
  if (config.drafts_by_tensor && !keys.has_draft(config.n_file_layers - 1)) config.n_nextn_layers = 0;
  config.n_layers = config.n_file_layers - config.n_nextn_layers;
  return Ok{};
}

Status read_rope_scaling(KeyReader& keys, ModelConfig& config) {
  STOKER_TRY(std::optional<std::string> type, keys.text("rope.scaling.type"));
  STOKER_TRY(std::optional<double> old_linear, keys.real("rope.scale_linear", false));
  if (config.rope_factor == 0 && old_linear) config.rope_factor = static_cast<float>(*old_linear);
  const std::string name = type.value_or("linear");
  if (name == "none" || name.empty()) {
    config.rope_scaling = RopeScaling::kNone;
  } else if (name == "linear") {
    config.rope_scaling = config.rope_factor > 0 ? RopeScaling::kLinear : RopeScaling::kNone;
  } else if (name == "yarn") {
    config.rope_scaling = RopeScaling::kYarn;
    if (!(config.rope_factor > 0)) {
      return Error{ErrorCode::kCorrupt,
                   str_cat("key ", keys.full("rope.scaling.factor"), " is missing, YaRN needs it above 0")};
    }
  } else if (name == "longrope") {
    config.rope_scaling = RopeScaling::kLongRope;
  } else {
    return Error{ErrorCode::kUnsupported, str_cat("key ", keys.full("rope.scaling.type"), " is ", quoted(name),
                                                  "; known are none, linear, yarn and longrope")};
  }
  if (config.rope_original_context == 0) config.rope_original_context = config.context_length;
  return Ok{};
}

Status read_sliding(KeyReader& keys, ModelConfig& config) {
  const auto n_layers = static_cast<size_t>(config.n_layers);
  config.sliding.assign(n_layers, false);
  if (config.window == 0) return Ok{};
  const gguf::Value* pattern = keys.find("attention.sliding_window_pattern");
  if (pattern && std::holds_alternative<gguf::Array>(pattern->data)) {
    STOKER_TRY(config.sliding, keys.layer_flags("attention.sliding_window_pattern", config));
    return Ok{};
  }
  if (config.pattern_required && !pattern) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("required key ", keys.full("attention.sliding_window_pattern"), " is missing")};
  }
  STOKER_TRY_STATUS(keys.read(
      {.key = "attention.sliding_window_pattern", .field = &ModelConfig::sliding_period, .min = 0, .max = kMaxLayers},
      config));
  const int64_t period = config.sliding_period;
  for (size_t layer = 0; layer < n_layers; ++layer) {
    const int64_t in_period = period == 0 ? 0 : static_cast<int64_t>(layer) % period;
    config.sliding[layer] = period == 0 || in_period != (config.whole_first ? 0 : period - 1);
  }
  return Ok{};
}

/// Which layers have an indexer. Unless the file says it: all, or as in GLM-5.2 the first two and then one of four.
Status read_index_layers(KeyReader& keys, ModelConfig& config) {
  if (config.index_top_k == 0) return Ok{};
  constexpr int64_t kLongContext = 1048576;  // only GLM-5.2 has it
  const bool some = config.index_by_context && config.context_length >= kLongContext;
  config.index_layers.resize(static_cast<size_t>(config.n_layers));
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    config.index_layers[static_cast<size_t>(layer)] = !some || layer <= 1 || layer % 4 == 2;
  }
  constexpr std::string_view kTypes = "attention.indexer.types";
  if (!config.index_by_context || !keys.find(kTypes)) return Ok{};
  STOKER_TRY(config.index_layers, keys.layer_flags(kTypes, config));
  if (config.index_layers[0]) return Ok{};
  return Error{ErrorCode::kCorrupt, str_cat("key ", keys.full(kTypes), " says that layer 0 takes an earlier choice")};
}

Status check_heads(const ModelConfig& config) {
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    if (config.n_heads[layer] % config.n_kv_heads[layer] != 0) {
      return Error{ErrorCode::kCorrupt, str_cat("layer ", layer, " has ", config.n_heads[layer], " heads and ",
                                                config.n_kv_heads[layer], " key-value heads: not a multiple")};
    }
  }
  if (config.k_dim % 8 != 0 || config.v_dim % 8 != 0 || config.k_dim > 1024 || config.v_dim > 1024) {
    return Error{ErrorCode::kUnsupported, str_cat("head dimensions ", config.k_dim, " and ", config.v_dim,
                                                  "; this version runs multiples of 8 up to 1024")};
  }
  if (config.k_dim_swa % 8 != 0 || config.v_dim_swa % 8 != 0 || config.k_dim_swa > 1024 || config.v_dim_swa > 1024) {
    return Error{ErrorCode::kUnsupported, str_cat("head dimensions ", config.k_dim_swa, " and ", config.v_dim_swa,
                                                  " of sliding layers; this version runs multiples of 8 up to 1024")};
  }
  if (config.rope_dims_swa % 2 != 0 || (config.k_dim_swa && config.rope_dims_of(true) > config.k_dim_swa)) {
    return Error{ErrorCode::kCorrupt, str_cat("rope.dimension_count_swa is ", config.rope_dims_of(true),
                                              ", wanted an even number up to the head dimension ", config.k_dim_swa)};
  }
  const int64_t most_turned = config.k_dim_swa ? config.rope_dims : std::max(config.rope_dims, config.rope_dims_swa);
  if (config.rope_dims % 2 != 0 || most_turned > config.k_dim) {
    return Error{ErrorCode::kCorrupt, str_cat("rope.dimension_count is ", most_turned,
                                              ", wanted an even number up to the head dimension ", config.k_dim)};
  }
  return Ok{};
}

/// A number for all layers, or a list with one for each.
Result<double> layer_real(const gguf::File& file, const std::string& key, int64_t layer, int64_t n_layers) {
  const gguf::Value* value = file.find(key);
  if (!value) return Error{ErrorCode::kCorrupt, str_cat("required key ", key, " is missing")};
  if (const auto* number = std::get_if<double>(&value->data)) return *number;
  const auto* array = std::get_if<gguf::Array>(&value->data);
  if (array && array->floats.size() >= static_cast<size_t>(n_layers)) return array->floats[static_cast<size_t>(layer)];
  return Error{ErrorCode::kCorrupt,
               str_cat("key ", key, " is no number and no list of ", n_layers, " or more of them")};
}

/// How many positions a compressed row of each layer stands for.
Status read_ratios(const KeyReader& keys, ModelConfig& config) {
  constexpr std::string_view kKey = "attention.compress_ratios";
  if (!keys.find(kKey)) return Error{ErrorCode::kCorrupt, str_cat("required key ", keys.full(kKey), " is missing")};
  STOKER_TRY(config.ratios, keys.layer_integers(kKey, config));
  return Ok{};
}

/// What gate and up are cut to before the activation.
Status read_limits(const gguf::File& file, const std::string& key, int64_t n_layers, std::vector<float>& limits) {
  for (int64_t layer = 0; layer < n_layers; ++layer) {
    STOKER_TRY(const double value, layer_real(file, key, layer, n_layers));
    if (!(value >= 0 && value < 1e6)) {
      return Error{ErrorCode::kCorrupt, str_cat("key ", key, " is ", value, ", outside 0 to 1e6")};
    }
    limits.push_back(value > kNoLimit ? static_cast<float>(value) : 0);
  }
  return Ok{};
}

/// Of experts and of shared ones; these without a key of their own as those, where there must be any.
Status read_all_limits(const gguf::File& file, const KeyReader& keys, ModelConfig& config) {
  const std::string key = keys.full("swiglu_clamp_exp"), shared = keys.full("swiglu_clamp_shexp");
  if (config.late_limits) {
    if (file.find(key)) STOKER_TRY_STATUS(read_limits(file, key, config.n_layers, config.expert_limit));
    return file.find(shared) ? read_limits(file, shared, config.n_layers, config.shared_limit) : Status(Ok{});
  }
  STOKER_TRY_STATUS(read_limits(file, key, config.n_layers, config.expert_limit));
  return read_limits(file, file.find(shared) ? shared : key, config.n_layers, config.shared_limit);
}

/// -infinity stands for none.
Status read_sparsity(const gguf::File& file, const KeyReader& keys, ModelConfig& config) {
  const std::string key = keys.full("activation_sparsity_scale");
  if (!file.find(key)) return Ok{};
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    STOKER_TRY(const double value, layer_real(file, key, layer, config.n_layers));
    if (!(value < 100)) {
      return Error{ErrorCode::kCorrupt, str_cat("key ", key, " is ", value, ", wanted up to 100")};
    }
    config.gate_sparsity.push_back(value > -100 ? static_cast<float>(value) : 0);
  }
  return Ok{};
}

Status read_xielu(const gguf::File& file, ModelConfig& config) {
  if (config.xielu.empty()) return Ok{};
  config.xielu.resize(static_cast<size_t>(config.n_layers));
  constexpr std::pair<const char*, double XieluKeys::*> kFields[] = {{"xielu.alpha_p", &XieluKeys::alpha_p},
                                                                     {"xielu.alpha_n", &XieluKeys::alpha_n},
                                                                     {"xielu.beta", &XieluKeys::beta},
                                                                     {"xielu.eps", &XieluKeys::eps}};
  for (const auto& [key, field] : kFields) {
    for (int64_t layer = 0; layer < config.n_layers; ++layer) {
      STOKER_TRY(const double value, layer_real(file, key, layer, config.n_layers));
      if (!(value > -1e3 && value < 1e3)) {
        return Error{ErrorCode::kCorrupt, str_cat("key ", key, " is ", value, ", outside -1000 to 1000")};
      }
      config.xielu[static_cast<size_t>(layer)].*field = value;
    }
  }
  return Ok{};
}

bool reads(const Arch& arch, std::string_view key) {
  return std::any_of(arch.keys.begin(), arch.keys.end(), [&](const KeySpec& k) { return k.key == key; });
}

/// Files may say of a family what is always so; what they say otherwise is not run.
Status refuse_other_routing(KeyReader& keys, const ModelConfig& config) {
  if (config.n_experts <= 1) return Ok{};
  const auto refuse = [&](std::string_view key, auto value, auto wanted) -> Status {
    if (reads(*config.arch, key) || !value || *value == wanted) return Ok{};
    return Error{ErrorCode::kUnsupported, str_cat("key ", keys.full(key), " is ", *value, "; this version runs ",
                                                  config.arch->name, " with ", wanted, " only")};
  };
  STOKER_TRY(std::optional<double> gating, keys.real("expert_gating_func", true));
  if (gating && *gating == 0) gating.reset();
  STOKER_TRY_STATUS(refuse("expert_gating_func", gating, static_cast<double>(config.gating)));
  STOKER_TRY(std::optional<bool> norm, keys.boolean("expert_weights_norm"));
  return refuse("expert_weights_norm", norm, config.renormalize);
}

Status refuse_unread_keys(KeyReader& keys, const Arch& arch) {
  for (const RefusedKey& refused : kRefused) {
    if (reads(arch, refused.key)) continue;
    STOKER_TRY(std::optional<double> value, keys.real(std::string(refused.key), false));
    if (value && *value != refused.off && *value != refused.also_off) {
      return Error{ErrorCode::kUnsupported, str_cat("key ", keys.full(refused.key), " is ", *value, ": ", refused.what,
                                                    " are not run by this version for ", arch.name)};
    }
  }
  return Ok{};
}

/// Files whose positions have several axes, for pictures, turn halves whatever the family does.
Status refuse_sections(const KeyReader& keys, const ModelConfig& config) {
  if (config.rope_pairs == RopePairs::kHalves) return Ok{};  // In text all axes have the same position.
  const gguf::Value* value = keys.find("rope.dimension_sections");
  if (!value) return Ok{};
  const auto* array = std::get_if<gguf::Array>(&value->data);
  const bool none = array && std::all_of(array->ints.begin(), array->ints.end(), [](int64_t n) { return n == 0; });
  if (none) return Ok{};
  return Error{ErrorCode::kUnsupported, str_cat("key ", keys.full("rope.dimension_sections"),
                                                ": positions of several axes are not run by this version")};
}

Status read_sections(const KeyReader& keys, ModelConfig& config) {
  constexpr size_t kAxes = 4;
  const gguf::Value* value = keys.find("rope.dimension_sections");
  if (!value)
    return Error{ErrorCode::kCorrupt, str_cat("required key ", keys.full("rope.dimension_sections"), " is missing")};
  const auto* array = std::get_if<gguf::Array>(&value->data);
  int64_t sum = 0;
  bool good = array && array->ints.size() == kAxes;
  for (size_t i = 0; good && i < kAxes; ++i) {
    good = array->ints[i] >= 0 && array->ints[i] <= 65536;
    sum += array->ints[i];
  }
  if (!good || sum == 0) {
    return Error{ErrorCode::kCorrupt, str_cat("key ", keys.full("rope.dimension_sections"),
                                              " is no list of 4 numbers up to 65536, not all 0")};
  }
  config.rope_sections = array->ints;
  return Ok{};
}

/// The best groups are those with the largest sum of two scores, and must have enough experts together.
Status check_groups(const KeyReader& keys, ModelConfig& config) {
  if (config.n_groups <= 1 || config.n_experts == 0) {
    config.n_groups = config.n_used_groups = 1;
    return Ok{};
  }
  const int64_t size = config.n_experts / config.n_groups;
  if (config.n_experts % config.n_groups != 0 || size < 2) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("key ", keys.full("expert_group_count"), " is ", config.n_groups,
                         ", wanted equal groups of at least 2 out of ", config.n_experts, ", which expert_count is")};
  }
  if (config.n_used_groups < 1 || config.n_used_groups > config.n_groups ||
      config.n_used_groups * size < config.n_used_experts) {
    return Error{ErrorCode::kCorrupt, str_cat("key ", keys.full("expert_group_used_count"), " is ",
                                              config.n_used_groups, ", wanted up to ", config.n_groups, " groups of ",
                                              size, " that hold the ", config.n_used_experts, " of expert_used_count")};
  }
  return Ok{};
}

Status check_experts(KeyReader& keys, ModelConfig& config) {
  if (config.n_experts <= 1) config.n_experts = config.n_used_experts = 0;
  if (config.n_used_experts < (config.n_experts ? 1 : 0) || config.n_used_experts > config.n_experts) {
    return Error{ErrorCode::kCorrupt, str_cat("key ", keys.full("expert_used_count"), " is ", config.n_used_experts,
                                              ", wanted 1 to ", config.n_experts, ", which expert_count is")};
  }
  if (config.gating > static_cast<int64_t>(Gating::kSoftmaxOfChosen) && reads(*config.arch, "expert_gating_func")) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("key ", keys.full("expert_gating_func"), " is ", config.gating,
                         "; this version runs 1, softmax, 2, sigmoid, and 3, softmax over the chosen")};
  }
  STOKER_TRY_STATUS(refuse_other_routing(keys, config));
  return check_groups(keys, config);
}

Status check_causal(KeyReader& keys, const ModelConfig& config) {
  STOKER_TRY(std::optional<bool> causal, keys.boolean("attention.causal"));
  if (causal.value_or(config.causal) == config.causal) return Ok{};
  return Error{
      ErrorCode::kUnsupported,
      str_cat("key ", keys.full("attention.causal"), " is ", *causal ? "true" : "false", ": ", config.arch->name,
              config.causal ? " without" : " with", " causal attention is not run by this version")};
}

/// How many kinds of text a table tells apart; ours are all of the first.
Status read_token_types(const gguf::File& file, ModelConfig& config) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type_count";
  if (config.causal || !file.find_tensor("token_types.weight")) return Ok{};
  STOKER_TRY(std::optional<int64_t> count, file.integer(kKey));
  if (!count) return Error{ErrorCode::kCorrupt, str_cat("required key ", kKey, " is missing")};
  if (*count < 1 || *count > 65536) {
    return Error{ErrorCode::kCorrupt, str_cat("key ", kKey, " is ", *count, ", outside 1 to 65536")};
  }
  config.n_token_types = *count;
  return Ok{};
}

/// What the scores of a model that ranks are called.
Status read_rank_labels(const KeyReader& keys, ModelConfig& config) {
  constexpr std::string_view kKey = "classifier.output_labels";
  const gguf::Value* value = keys.find(kKey);
  if (!value) return Ok{};
  const auto* array = std::get_if<gguf::Array>(&value->data);
  if (!array || array->strings.size() != array->size() || array->size() > kMaxLabels) {
    return Error{ErrorCode::kCorrupt, str_cat("key ", keys.full(kKey), " is no list of up to ", kMaxLabels, " texts")};
  }
  config.rank_labels = array->strings;
  return Ok{};
}

Status derive(ModelConfig& config) {
  if (config.n_kv_heads.values.empty()) config.n_kv_heads = config.n_heads;
  if (config.k_dim == 0 || config.v_dim == 0) {
    const int64_t head = config.dim / config.n_heads[0];
    if (config.k_dim == 0) config.k_dim = head;
    if (config.v_dim == 0) config.v_dim = head;
  }
  if (config.rope_dims == 0) config.rope_dims = config.k_dim;
  if (config.rope_base_swa == 0) config.rope_base_swa = config.rope_base;
  if (config.attn_scale == 0) config.attn_scale = 1.0f / __builtin_sqrtf(static_cast<float>(config.k_dim));
  return check_heads(config);
}

}  // namespace

int64_t PerLayer::max() const { return *std::max_element(values.begin(), values.end()); }

int64_t ModelConfig::kv_layer(int64_t layer) const {
  const int64_t n_own = n_layers - n_shared_kv;
  if (layer < n_own) return layer;
  for (int64_t i = n_own - 1; i >= 0; --i) {
    if (sliding[static_cast<size_t>(i)] == sliding[static_cast<size_t>(layer)]) return i;
  }
  return layer;
}

bool ModelConfig::any_sliding() const { return std::find(sliding.begin(), sliding.end(), true) != sliding.end(); }

Result<ModelConfig> read_config(const gguf::File& file, const Overrides& overrides) {
  STOKER_TRY(std::optional<std::string> arch_name, file.string("general.architecture"));
  if (!arch_name) return Error{ErrorCode::kCorrupt, "required key general.architecture is missing"};
  STOKER_TRY(const Arch* arch, find_arch(*arch_name));
  ModelConfig config;
  config.arch = arch;
  STOKER_TRY(std::optional<std::string> name, file.string("general.name"));
  config.name = name.value_or("");
  arch->defaults(config);

  KeyReader keys(file, arch->name, overrides);
  STOKER_TRY_STATUS(read_layer_counts(keys, config));
  for (const KeySpec& spec : kCommonKeys) {
    if (!reads(*arch, spec.key)) STOKER_TRY_STATUS(keys.read(spec, config));
  }
  if (config.norm_by_key) config.layer_norm = !keys.find(kRmsNormEpsilon.key);
  if (!reads(*arch, kRmsNormEpsilon.key)) {
    STOKER_TRY_STATUS(keys.read(config.layer_norm ? kLayerNormEpsilon : kRmsNormEpsilon, config));
  }
  for (const KeySpec& spec : arch->keys) STOKER_TRY_STATUS(keys.read(spec, config));
  STOKER_TRY_STATUS(refuse_unread_keys(keys, *arch));
  STOKER_TRY_STATUS(refuse_sections(keys, config));
  if (config.rope_axes) STOKER_TRY_STATUS(read_sections(keys, config));
  STOKER_TRY_STATUS(check_experts(keys, config));
  STOKER_TRY_STATUS(check_causal(keys, config));
  STOKER_TRY_STATUS(read_token_types(file, config));
  STOKER_TRY_STATUS(read_rank_labels(keys, config));
  if (!config.causal) {
    STOKER_TRY(std::optional<std::string> activation, keys.text("hidden_activation"));
    config.hidden_activation = activation.value_or("");
  }
  STOKER_TRY_STATUS(read_rope_scaling(keys, config));
  STOKER_TRY_STATUS(read_sliding(keys, config));
  STOKER_TRY_STATUS(read_index_layers(keys, config));
  STOKER_TRY_STATUS(read_xielu(file, config));
  if (config.has_sparsity) STOKER_TRY_STATUS(read_sparsity(file, keys, config));
  if (config.compresses) STOKER_TRY_STATUS(read_ratios(keys, config));
  if (config.compresses || config.late_limits) STOKER_TRY_STATUS(read_all_limits(file, keys, config));
  STOKER_TRY_STATUS(keys.check_overrides());
  const gguf::TensorInfo* embedding = file.find_tensor("token_embd.weight");
  if (embedding && embedding->shape.size() == 2) config.n_vocab = embedding->shape[0];
  const gguf::TensorInfo* gates = file.find_tensor("blk.0.attn_gate.weight");
  if (gates && gates->shape.size() == 2) config.head_gates = gates->shape[0] == config.n_heads[0];
  if (arch->finish) STOKER_TRY_STATUS(arch->finish(config));
  STOKER_TRY_STATUS(derive(config));
  return config;
}

}  // namespace stoker::model
