// Ling and Ring. 1 (lite, plus): Llama's attention, softmax gating, shared experts. 2 (mini, flash, 1T): norms on q and
// k heads, half of which is rotated; dense layers first, then sigmoid gating with a selection bias within the best
// groups, and shared experts. Layers that predict further tokens stay unread. Sources: Ling (arXiv:2503.05139),
// Ling 2.0 (arXiv:2510.22115). Files of 1 keep q and k rows permuted.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::bailingmoe {
namespace {

constexpr KeySpec kKeys1[] = {
    kExpertCount, kExpertUsedCount, kExpertWidth, kSharedCount, kWeightsNorm, kWeightsScale,
};

void defaults1(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }
void defaults2(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
}

void build_layer1(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.feed_forward(w, layer);
}
void build_layer2(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kBailingMoe, kBailingMoe2;
const Arch kBailingMoe{.name = "bailingmoe",
                       .keys = kKeys1,
                       .tensors = kGqaTensors,
                       .globals = kUntiedGlobals,
                       .defaults = defaults1,
                       .finish = nullptr,
                       .build_layer = build_layer1};
const Arch kBailingMoe2{.name = "bailingmoe2",
                        .keys = kRoutingKeys,
                        .tensors = kNormedQkMoeTensors,
                        .globals = kUntiedGlobals,
                        .defaults = defaults2,
                        .finish = nullptr,
                        .build_layer = build_layer2};

}  // namespace stoker::model::bailingmoe
