// MiniMax-M2: norms on the whole vectors of q and k, half of each head rotated, sigmoid gating with a selection bias,
// renormalized, in every layer.
// Source: the published configuration and weights (MiniMax-M2, 2025).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::minimax_m2 {
namespace {

// Experts are as wide as feed_forward_length says; expert_feed_forward_length repeats it.
constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kGatingFunc,
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kQ},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kK},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.renormalize = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.whole_qk_norm = true});
  plan.moe(w, layer, {});
}

}  // namespace

extern const Arch kMinimaxM2;
const Arch kMinimaxM2{.name = "minimax-m2",
                      .keys = kKeys,
                      .tensors = kTensors,
                      .globals = kUntiedGlobals,
                      .defaults = defaults,
                      .finish = nullptr,
                      .build_layer = build_layer};

}  // namespace stoker::model::minimax_m2
