// GLM-4.5, 4.5-Air and 4.6: half of each head is rotated, the largest has norms on q and k heads, the first layers are
// dense; sigmoid gating with a selection bias and, in all layers with experts, shared ones. Layers that predict further
// tokens stay unread.
// Source: GLM-4.5 (arXiv:2508.06471).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::glm4_moe {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead, Dim::kModel, Need::kOptional},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead, Dim::kModel, Need::kOptional},
    {"post_attention_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},  // whatever its name: before the experts
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kGlm4Moe;
const Arch kGlm4Moe{.name = "glm4moe",
                    .keys = kRoutingKeys,
                    .tensors = kTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};

}  // namespace stoker::model::glm4_moe
