// ERNIE 4.5, dense and with experts (text): Llama's attention; softmax gating, where files have it with a selection
// bias, renormalized, and a shared expert. Each n-th layer has experts, the first ones have none.
// Source: ERNIE 4.5 technical report (2025). Rows of q and k are as the model has them: its rotation is of neighbours.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model {
namespace {

constexpr KeySpec kMoeKeys[] = {
    {.key = "expert_count", .field = &ModelConfig::n_experts, .required = true, .min = 2, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .required = true, .max = kMaxExperts},
    {.key = "expert_feed_forward_length",
     .field = &ModelConfig::expert_ff_dim,
     .required = true,
     .min = 1,
     .max = 1 << 24},
    {.key = "expert_shared_feed_forward_length", .field = &ModelConfig::shared_ff_dim, .max = 1 << 24},
    {.key = "interleave_moe_layer_step",
     .field = &ModelConfig::expert_interval,
     .required = true,
     .min = 1,
     .max = 512},
    {.key = "leading_dense_block_count", .field = &ModelConfig::n_dense_layers, .max = 512},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.renormalize = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kErnie45, kErnie45Moe;
const Arch kErnie45{.name = "ernie4_5",
                    .keys = {},
                    .tensors = kGqaTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};
const Arch kErnie45Moe{.name = "ernie4_5-moe",
                       .keys = kMoeKeys,
                       .tensors = kGqaTensorsAndSelectionBias,
                       .globals = kTiedGlobals,
                       .defaults = defaults,
                       .finish = nullptr,
                       .build_layer = build_layer};

}  // namespace stoker::model
