// dots.llm1 142B: multi-head attention with norms on q and k heads; dense layers first, then sigmoid gating with a
// selection bias, and shared experts.
// Source: dots.llm1 technical report (arXiv:2506.05767).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::dots1 {
namespace {

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kDots1;
const Arch kDots1{.name = "dots1",
                  .keys = kRoutingKeys,
                  .tensors = kNormedQkMoeTensors,
                  .globals = kUntiedGlobals,
                  .defaults = defaults,
                  .finish = nullptr,
                  .build_layer = build_layer};

}  // namespace stoker::model::dots1
