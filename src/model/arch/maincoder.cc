// Maincoder 1B: Llama's layer with norms on q and k heads after the rotation.
// Source: the published configuration (Maincoder-1B, 2025). Files keep q and k rows permuted for this rotation.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::maincoder {
namespace {

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.late_qk_norm = true});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kMaincoder;
const Arch kMaincoder{.name = "maincoder",
                      .keys = {},
                      .tensors = kNormedQkMoeTensors,
                      .globals = kTiedGlobals,
                      .defaults = defaults,
                      .finish = nullptr,
                      .build_layer = build_layer};

}  // namespace stoker::model::maincoder
