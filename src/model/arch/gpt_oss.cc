// gpt-oss 20B and 120B: a sink logit per head, a window of 128 on every other layer, YaRN with bounds that are not
// rounded, biases everywhere, weights by softmax over the chosen experts, SwiGLU with clamps.
// Source: gpt-oss model card (arXiv:2508.10925) and the published configuration (`truncate: false`).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::gpt_oss {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV},
    {"attn_sinks.weight", &LayerWeights::sinks, Dim::kHeads, Dim::kModel, Need::kF32},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_output.bias", &LayerWeights::bo, Dim::kModel},
    {"post_attention_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},  // whatever its name: before the experts
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts},
    {"ffn_gate_inp.bias", &LayerWeights::b_router, Dim::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf},
    {"ffn_gate_exps.bias", &LayerWeights::b_expert_gate, Dim::kExpertFf},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf},
    {"ffn_up_exps.bias", &LayerWeights::b_expert_up, Dim::kExpertFf},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf},
    {"ffn_down_exps.bias", &LayerWeights::b_expert_down, Dim::kModel},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.yarn_truncate = 0;
  config.gating = static_cast<int64_t>(Gating::kSoftmaxOfChosen);
  config.sliding_period = 2;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.sinks = true});
  plan.moe(w, layer, {.activation = Activation::kClampedSilu});
}

}  // namespace

extern const Arch kGptOss;
const Arch kGptOss{.name = "gpt-oss",
                   .keys = kKeys,
                   .tensors = kTensors,
                   .globals = kUntiedGlobals,
                   .defaults = defaults,
                   .finish = nullptr,
                   .build_layer = build_layer};

}  // namespace stoker::model::gpt_oss
