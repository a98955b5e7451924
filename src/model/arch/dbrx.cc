// DBRX: norms that subtract the mean, without biases; q, k and v cut off; softmax gating, renormalized.
// Source: the published configuration and code (DBRX, 2024).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::dbrx {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    {.key = "attention.clamp_kqv", .field = &ModelConfig::qkv_limit, .required = true, .max = 1e6},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_output_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},  // whatever its name: before the experts
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.layer_norm = true;
  config.renormalize = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.moe(w, layer, {});
}

}  // namespace

extern const Arch kDbrx;
const Arch kDbrx{.name = "dbrx",
                 .keys = kKeys,
                 .tensors = kTensors,
                 .globals = kUntiedGlobals,
                 .defaults = defaults,
                 .finish = nullptr,
                 .build_layer = build_layer};

}  // namespace stoker::model::dbrx
