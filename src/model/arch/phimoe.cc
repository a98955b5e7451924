// Phi-3.5-MoE: LayerNorm with bias, biases on q, k, v and o and on the logits, long-rope where the file has its
// factors; each of the two chosen experts shares its weight with those near it only, so that both together weigh up
// to 2. Sources: Phi-3 (arXiv:2404.14219), GRIN (arXiv:2409.12136) and the code published with the model.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::phimoe {
namespace {

// Experts are as wide as feed_forward_length says.
constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    // By this name, whatever the norm.
    {.key = "attention.layer_norm_rms_epsilon",
     .field = &ModelConfig::norm_eps,
     .required = true,
     .min = 1e-12,
     .max = 1},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_norm.bias", &LayerWeights::b_attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_output.bias", &LayerWeights::bo, Dim::kModel},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_norm.bias", &LayerWeights::b_ffn_norm, Dim::kModel},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.layer_norm = true;
  config.gating = static_cast<int64_t>(Gating::kSoftmaxOfNear);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.moe(w, layer, {});
}

}  // namespace

extern const Arch kPhiMoe;
const Arch kPhiMoe{.name = "phimoe",
                   .keys = kKeys,
                   .tensors = kTensors,
                   .globals = kBiasedNormGlobals,
                   .defaults = defaults,
                   .finish = nullptr,
                   .build_layer = build_layer};

}  // namespace stoker::model::phimoe
