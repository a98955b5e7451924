// SmallThinker: experts are chosen by what enters the layer, before attention and without a norm; their activation is a
// ReLU. Of four layers the first sees everything and does not rotate, where there are windows at all.
// Source: SmallThinker (arXiv:2507.20984).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::smallthinker {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    kGatingFunc,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.renormalize = true;
  config.sliding_period = 4;
  config.whole_first = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  const ModelConfig& config = plan.config();
  plan.route_early(w, layer);
  plan.attention(w, layer, {.rotate = config.window_of(layer) != 0 || !config.any_sliding()});
  plan.moe(w, layer, {.activation = Activation::kRelu});
}

}  // namespace

extern const Arch kSmallThinker;
const Arch kSmallThinker{.name = "smallthinker",
                         .keys = kKeys,
                         .tensors = kGqaTensors,
                         .globals = kTiedGlobals,
                         .defaults = defaults,
                         .finish = nullptr,
                         .build_layer = build_layer};

}  // namespace stoker::model::smallthinker
