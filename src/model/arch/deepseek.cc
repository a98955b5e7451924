// DeepSeekMoE 16B (the first DeepSeek with experts): Llama's attention, dense layers first, then softmax gating whose
// weights are not renormalized, and shared experts.
// Source: DeepSeekMoE (arXiv:2401.06066). Files keep q and k rows permuted for this rotation.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::deepseek {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount, kExpertUsedCount, kExpertWidth, kSharedCount, kLeadingDense, kWeightsScale,
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

}  // namespace stoker::model::deepseek
