// Hunyuan, dense and A13B: norms on q and k heads after the rotation; with experts softmax gating, renormalized, and a
// shared expert. Hunyuan 3: the norms before it, dense layers first, sigmoid gating with a selection bias whose name
// has no suffix. Sources: Hunyuan-A13B technical report (2025), the published configurations.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::hunyuan {
namespace {

// Experts of A13B are as wide as feed_forward_length says; expert_feed_forward_length repeats it.
constexpr KeySpec kMoeKeys[] = {kExpertCount, kExpertUsedCount, kSharedWidth};
constexpr KeySpec kKeys3[] = {
    kExpertCount, kExpertUsedCount, kExpertWidth, kSharedWidth, kLeadingDense, kGatingFunc, kWeightsNorm, kWeightsScale,
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
    // Last, for the families that have none.
    {"exp_probs_b", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kExperts},
};
constexpr std::span<const TensorSpec> kTensors3 = kTensors;

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.renormalize = true;
}
void defaults3(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
}

Status moe_finish(ModelConfig& config) {
  if (config.shared_ff_dim == 0) config.shared_ff_dim = config.ff_dim[0];
  return Ok{};
}
Status finish3(ModelConfig& config) {
  if (config.shared_ff_dim == 0) config.shared_ff_dim = config.expert_ff_dim;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.late_qk_norm = true});
  plan.feed_forward(w, layer);
}
void build_layer3(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kHunyuanDense, kHunyuanMoe, kHunyuan3;
const Arch kHunyuanDense{.name = "hunyuan-dense",
                         .keys = {},
                         .tensors = kTensors3.first(kTensors3.size() - 1),
                         .globals = kTiedGlobals,
                         .defaults = defaults,
                         .finish = nullptr,
                         .build_layer = build_layer};
const Arch kHunyuanMoe{.name = "hunyuan-moe",
                       .keys = kMoeKeys,
                       .tensors = kTensors3.first(kTensors3.size() - 1),
                       .globals = kTiedGlobals,
                       .defaults = defaults,
                       .finish = moe_finish,
                       .build_layer = build_layer};
const Arch kHunyuan3{.name = "hy_v3",
                     .keys = kKeys3,
                     .tensors = kTensors3,
                     .globals = kTiedGlobals,
                     .defaults = defaults3,
                     .finish = finish3,
                     .build_layer = build_layer3};

}  // namespace stoker::model::hunyuan
