// Ministral 3: Llama's block with YaRN whose bounds and magnitude keys decide, and queries that grow beyond the
// original context. With experts as Mixtral has them.
// Source: the published configuration (Ministral 3, 2025). Files keep q and k rows permuted for this rotation.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::mistral3 {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "expert_count", .field = &ModelConfig::n_experts, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .max = kMaxExperts},
    {.key = "attention.temperature_scale", .field = &ModelConfig::attn_temperature, .max = 1e3},
    {.key = "rope.scaling.yarn_beta_fast", .field = &ModelConfig::yarn_beta_fast, .min = 1e-3, .max = 1e6},
    {.key = "rope.scaling.yarn_beta_slow", .field = &ModelConfig::yarn_beta_slow, .min = 1e-3, .max = 1e6},
    {.key = "rope.scaling.yarn_log_multiplier", .field = &ModelConfig::yarn_log_multiplier, .max = 1e3},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.renormalize = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.temperature = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kMistral3;
const Arch kMistral3{.name = "mistral3",
                     .keys = kKeys,
                     .tensors = kGqaTensors,
                     .globals = kTiedGlobals,
                     .defaults = defaults,
                     .finish = nullptr,
                     .build_layer = build_layer};

}  // namespace stoker::model::mistral3
