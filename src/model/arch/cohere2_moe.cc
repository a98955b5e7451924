// Command A+ and North: as Command A, attention and feed-forward read the same norm and are added together, with
// experts behind dense layers; what the shared expert and the others give is averaged. Layers with a window rotate, and
// so do the dense ones. Norms subtract the mean unless the file names the epsilon of those that do not. Source: the
// published configuration (North Mini Code, 2026) and llama.cpp.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::cohere2_moe {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "expert_shared_count", .field = &ModelConfig::n_shared, .max = kMaxExperts},
    kSharedWidth,
    {.key = "leading_dense_block_count", .field = &ModelConfig::n_dense_layers, .required = true, .max = 512},
    kGatingFunc,
    kWeightsNorm,
    kWeightsScale,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
    {.key = "logit_scale", .field = &ModelConfig::logit_divisor, .required = true, .min = 1e-6, .max = 1e6},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExpertsUnlessFused},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExpertsUnlessFused},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.layer_norm = config.norm_by_key = true;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.sliding_period = 4;
  config.whole_first = true;
  config.averages_shared = true;
}

/// The width is that of all shared experts together, or where it is missing of one.
Status finish(ModelConfig& config) {
  config.logit_divisor = 1 / config.logit_divisor;
  if (config.n_shared == 0) config.shared_ff_dim = 0;
  if (config.n_shared > 0 && config.shared_ff_dim > 0) config.n_shared = 1;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  const bool rotates = plan.config().window_of(layer) != 0 || layer < plan.config().n_dense_layers;
  plan.attention(w, layer, {.rotate = rotates, .parallel = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kCohere2Moe;
const Arch kCohere2Moe{.name = "cohere2moe",
                       .keys = kKeys,
                       .tensors = kTensors,
                       .globals = kTiedGlobals,
                       .defaults = defaults,
                       .finish = finish,
                       .build_layer = build_layer};

}  // namespace stoker::model::cohere2_moe
