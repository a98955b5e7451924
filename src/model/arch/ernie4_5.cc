// ERNIE 4.5, dense and with experts (text): Llama's attention; softmax gating, where files have it with a selection
// bias, renormalized, and a shared expert. Each n-th layer has experts, the first ones have none.
// Source: ERNIE 4.5 technical report (2025). Rows of q and k are as the model has them: its rotation is of neighbours.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::ernie4_5 {
namespace {

constexpr KeySpec kMoeKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    kSharedWidth,
    {.key = "interleave_moe_layer_step",
     .field = &ModelConfig::expert_interval,
     .required = true,
     .min = 1,
     .max = 512},
    kLeadingDense,
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

}  // namespace stoker::model::ernie4_5
