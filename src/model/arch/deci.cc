// DeciLM and NVIDIA's Llama-Nemotron 51B, Super 49B and Ultra 253B: Llama's layers, of which a search has taken parts
// away. A layer has attention, a matrix in its place, or neither; its feed-forward block may be missing.
// Source: Puzzle (arXiv:2411.19146). Files keep q and k rows permuted for this rotation.
#include <algorithm>

#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::deci {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "attention.head_count", .field = &ModelConfig::n_heads, .required = true, .max = 65536},
    {.key = "attention.head_count_kv", .field = &ModelConfig::n_kv_heads, .required = true, .max = 65536},
    {.key = "feed_forward_length", .field = &ModelConfig::ff_dim, .required = true, .max = 1 << 24},
};

constexpr TensorSpec kTensors[] = {
    of_attention({"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel}),
    of_attention({"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional}),
    of_attention({"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused}),
    of_attention({"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused}),
    of_attention({"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused}),
    of_attention({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut}),
    of_stateless({"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel, Dim::kModel, Need::kLinear}),
    of_stateless({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kModel, Need::kLinear}),
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel, Dim::kModel, Need::kFeedForward},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kFeedForward},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kFeedForward},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kFeedForward},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }

Status finish(ModelConfig& config) {
  const auto none = [&](std::string_view key) {
    return Error{ErrorCode::kUnsupported, str_cat("key deci.", key, " is 0 in all ", config.n_layers,
                                                  " layers; this version runs deci with some that have it")};
  };
  const int64_t most_heads = config.n_heads.max();
  if (most_heads == 0) return none("attention.head_count");
  if (config.n_kv_heads.max() == 0) return none("attention.head_count_kv");
  if (config.ff_dim.max() == 0) return none("feed_forward_length");
  std::vector<int64_t> heads, kv_heads;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const bool stateless = config.n_kv_heads[layer] == 0 || config.n_heads[layer] == 0;
    config.stateless_layers.values.push_back(stateless);
    config.linear_layers.values.push_back(stateless && config.n_heads[layer] > 0);
    heads.push_back(config.n_heads[layer] > 0 ? config.n_heads[layer] : most_heads);
    kv_heads.push_back(stateless ? heads.back() : config.n_kv_heads[layer]);
  }
  config.n_heads.values = std::move(heads);
  config.n_kv_heads.values = std::move(kv_heads);
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  const ModelConfig& config = plan.config();
  if (!config.is_stateless(layer)) {
    plan.attention(w, layer, {});
  } else if (w.wo) {
    plan.linear(w, layer);
  }
  if (w.down) plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kDeci;
const Arch kDeci{.name = "deci",
                 .keys = kKeys,
                 .tensors = kTensors,
                 .globals = kTiedGlobals,
                 .defaults = defaults,
                 .finish = finish,
                 .build_layer = build_layer};

}  // namespace stoker::model::deci
