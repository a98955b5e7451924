// SmolLM3: Llama's block, each fourth layer without rotation.
// Source: SmolLM3 (2025). Files keep q and k rows permuted for this rotation.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::smollm3 {
namespace {

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.rotate = (layer + 1) % 4 != 0});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kSmolLm3;
const Arch kSmolLm3{.name = "smollm3",
                    .keys = {},
                    .tensors = kGqaTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};

}  // namespace stoker::model::smollm3
