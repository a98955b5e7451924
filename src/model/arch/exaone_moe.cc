// K-EXAONE: norms before each block and on q and k heads, a window on three of four layers, which alone rotate; dense
// layers first, then sigmoid gating with a selection bias and a shared expert.
// Source: the published configuration (K-EXAONE, 2025).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::exaone_moe {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "expert_shared_count", .field = &ModelConfig::n_shared, .max = kMaxExperts},
    kSharedWidth,
    kLeadingDense,
    kGatingFunc,
    kWeightsNorm,
    kWeightsScale,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.sliding_period = 4;
}

/// The width is that of all shared experts together, or where it is missing of one.
Status finish(ModelConfig& config) {
  if (config.shared_ff_dim == 0) config.shared_ff_dim = config.expert_ff_dim;
  config.n_shared = 0;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true, .rotate = plan.config().window_of(layer) != 0});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kExaoneMoe;
const Arch kExaoneMoe{.name = "exaone-moe",
                      .keys = kKeys,
                      .tensors = kNormedQkMoeTensors,
                      .globals = kTiedGlobals,
                      .defaults = defaults,
                      .finish = finish,
                      .build_layer = build_layer};

}  // namespace stoker::model::exaone_moe
