// Laguna (poolside): norms on q and k heads, gates through a softplus, one for each head or for each value; XS and S
// have a window on three of four layers, the first sees everything, with heads and a rotation of their own. Dense
// layers first, then sigmoid gating with a selection bias and a shared expert.
// Source: the published configurations (Laguna XS.2 and M.1, 2026).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::laguna {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "expert_shared_count", .field = &ModelConfig::n_shared, .max = kMaxExperts},
    kSharedWidth,
    {.key = "leading_dense_block_count", .field = &ModelConfig::n_dense_layers, .required = true, .max = 512},
    kGatingFunc,
    kWeightsNorm,
    kWeightsScale,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
    {.key = "rope.dimension_count_swa", .field = &ModelConfig::rope_dims_swa, .max = 65536},
    {.key = "rope.scaling.yarn_attn_factor", .field = &ModelConfig::yarn_attn_factor, .max = 1e3},
    {.key = "rope.scaling.yarn_beta_fast", .field = &ModelConfig::yarn_beta_fast, .min = 1e-3, .max = 1e6},
    {.key = "rope.scaling.yarn_beta_slow", .field = &ModelConfig::yarn_beta_slow, .min = 1e-3, .max = 1e6},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.n_shared = 1;
  config.sliding_period = 4;
  config.whole_first = true;
  config.rope_swa_plain = true;
  config.head_gates = true;  // without tensors that say otherwise
}

/// The width is that of all shared experts together, or where it is missing of one.
Status finish(ModelConfig& config) {
  if (config.shared_ff_dim == 0) config.shared_ff_dim = config.n_shared * config.expert_ff_dim;
  config.n_shared = 0;
  config.yarn_magnitude = static_cast<double>(config.yarn_attn_factor);
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true, .softplus_gates = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kLaguna;
const Arch kLaguna{.name = "laguna",
                   .keys = kKeys,
                   .tensors = kGatedQkMoeTensors,
                   .globals = kTiedGlobals,
                   .defaults = defaults,
                   .finish = finish,
                   .build_layer = build_layer};

}  // namespace stoker::model::laguna
