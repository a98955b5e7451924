// What --type of `stoker synth` means for each tensor.
#include <string>

#include "base/str_cat.h"
#include "engine/synth_shapes.h"

namespace stoker::engine {
namespace {

using gguf::TensorType;

constexpr SynthRule kF32[] = {{"", TensorType::kF32}};
constexpr SynthRule kF16[] = {{"", TensorType::kF16}};
constexpr SynthRule kBF16[] = {{"", TensorType::kBF16}};
constexpr SynthRule kQ8_0[] = {{"", TensorType::kQ8_0}};
constexpr SynthRule kQ4_0[] = {{"", TensorType::kQ4_0}};
constexpr SynthRule kQ4_1[] = {{"", TensorType::kQ4_1}};
constexpr SynthRule kQ5_0[] = {{"", TensorType::kQ5_0}};
constexpr SynthRule kQ5_1[] = {{"", TensorType::kQ5_1}};
constexpr SynthRule kIQ4NL[] = {{"", TensorType::kIQ4NL}};
constexpr SynthRule kIQ4XS[] = {{"", TensorType::kIQ4XS}};
constexpr SynthRule kQ2K[] = {{"", TensorType::kQ2K}};
constexpr SynthRule kQ3K[] = {{"", TensorType::kQ3K}};
constexpr SynthRule kQ4K[] = {{"", TensorType::kQ4K}};
constexpr SynthRule kQ5K[] = {{"", TensorType::kQ5K}};
constexpr SynthRule kQ6K[] = {{"", TensorType::kQ6K}};
// As published Q4_K_M files: the tables, and in some layers the most sensitive matrices, with 6 bits.
constexpr SynthRule kQ4KM[] = {{"table.", TensorType::kQ6K},
                               {"finer.attn_v", TensorType::kQ6K},
                               {"finer.ffn_down", TensorType::kQ6K},
                               {"", TensorType::kQ4K}};
constexpr SynthRule kMxfp4[] = {{"table.", TensorType::kQ8_0}, {"", TensorType::kMXFP4}};
constexpr SynthRule kMxfp4Experts[] = {{"_exps", TensorType::kMXFP4}, {"", TensorType::kQ8_0}};  // as in gpt-oss

constexpr SynthType kTypes[] = {
    {"f32", kF32},
    {"f16", kF16},
    {"bf16", kBF16},
    {"q8_0", kQ8_0},
    {"q4_0", kQ4_0},
    {"q4_1", kQ4_1},
    {"q5_0", kQ5_0},
    {"q5_1", kQ5_1},
    {"q2_k", kQ2K},
    {"q3_k", kQ3K},
    {"q4_k", kQ4K},
    {"q5_k", kQ5K},
    {"q6_k", kQ6K},
    {"q4_k_m", kQ4KM},
    {"iq4_nl", kIQ4NL},
    {"iq4_xs", kIQ4XS},
    {"mxfp4", kMxfp4, kMxfp4Experts},
};

/// The layers to which Q4_K_M gives 6 bits: the first and last eighth, and every third between.
bool is_finer(int64_t layer, int64_t n_layers) {
  return layer < n_layers / 8 || layer >= 7 * n_layers / 8 || (layer - n_layers / 8) % 3 == 2;
}

/// The name that rules are matched with.
std::string rule_name(std::string_view tensor, int64_t n_layers) {
  if (!tensor.starts_with("blk.")) return str_cat("table.", tensor);
  const size_t dot = tensor.find('.', 4);
  const int64_t layer = std::atoll(std::string(tensor.substr(4, dot - 4)).c_str());
  return is_finer(layer, n_layers) ? str_cat("finer.", tensor.substr(dot + 1)) : std::string(tensor);
}

}  // namespace

std::span<const SynthType> synth_types() { return kTypes; }

Result<const SynthType*> find_synth_type(std::string_view name) {
  std::string known;
  for (const SynthType& type : kTypes) {
    if (type.name == name) return &type;
    known += str_cat(known.empty() ? "" : ", ", type.name);
  }
  return Error{ErrorCode::kInvalidArgument, str_cat("no type ", quoted(name), "; known are ", known)};
}

gguf::TensorType synth_type_of(const SynthType& type, std::string_view tensor, int64_t n_in, int64_t n_layers,
                               bool has_experts) {
  const std::string name = rule_name(tensor, n_layers);
  const bool other = has_experts && !type.with_experts.empty();
  for (const SynthRule& rule : other ? type.with_experts : type.rules) {
    if (name.find(rule.part) == std::string::npos) continue;
    if (n_in % gguf::type_info(rule.type)->n_weights == 0) return rule.type;
    return n_in % gguf::type_info(TensorType::kQ8_0)->n_weights == 0 ? TensorType::kQ8_0 : TensorType::kF16;
  }
  return TensorType::kF16;  // not reached: the last rule fits everything
}

}  // namespace stoker::engine
