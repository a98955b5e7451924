// DeepSeekMoE 16B (the first DeepSeek with experts): Llama's attention, dense layers first, then softmax gating whose
// weights are not renormalized, and shared experts.
// Source: DeepSeekMoE (arXiv:2401.06066). Files keep q and k rows permuted for this rotation.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "expert_count", .field = &ModelConfig::n_experts, .required = true, .min = 2, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .required = true, .max = kMaxExperts},
    {.key = "expert_feed_forward_length",
     .field = &ModelConfig::expert_ff_dim,
     .required = true,
     .min = 1,
     .max = 1 << 24},
    {.key = "expert_shared_count", .field = &ModelConfig::n_shared, .required = true, .max = kMaxExperts},
    {.key = "leading_dense_block_count", .field = &ModelConfig::n_dense_layers, .max = 512},
    {.key = "expert_weights_scale", .field = &ModelConfig::expert_scale, .max = 1e6},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kDeepseek;
const Arch kDeepseek{.name = "deepseek",
                     .keys = kKeys,
                     .tensors = kGqaTensors,
                     .globals = kTiedGlobals,
                     .defaults = defaults,
                     .finish = nullptr,
                     .build_layer = build_layer};

}  // namespace stoker::model
