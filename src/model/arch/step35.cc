// Step-3.5 and 3.7 Flash: norms on q and k heads, a gate for each head out of a matrix of its own, a window on most
// layers, which have more heads and turn all of each; the others turn half. Dense layers first, then sigmoid gating
// with a selection bias and a shared expert; what the activations give is cut off in some layers. Source: the published
// configuration and code (Step-3.5-Flash, 2026).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::step35 {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "expert_shared_feed_forward_length",
     .field = &ModelConfig::shared_ff_dim,
     .required = true,
     .min = 1,
     .max = 1 << 24},
    kLeadingDense,
    {.key = "moe_every_n_layers", .field = &ModelConfig::expert_interval, .min = 1, .max = 1},
    kGatingFunc,
    kWeightsNorm,
    kWeightsScale,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
    {.key = "rope.dimension_count_swa", .field = &ModelConfig::rope_dims_swa, .max = 65536},
};

constexpr GlobalTensorSpec kGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab},
    // Of layers that see everything, which use the first half.
    {"rope_freqs.weight", &Weights::rope_factors, Dim::kMostRopePairs, Dim::kModel, Need::kOptional},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.rope_base_swa = 10000;
  config.rope_swa_plain = true;
  config.pattern_required = true;
  config.late_limits = config.head_gates = true;
}

/// The key says how much a layer that slides turns.
Status finish(ModelConfig& config) {
  const int64_t head = config.k_dim ? config.k_dim : config.dim / config.n_heads[0];
  const int64_t turned = config.rope_dims ? config.rope_dims : head;
  if (config.rope_dims_swa == 0) config.rope_dims_swa = turned;
  config.rope_dims = turned / 2;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kStep35;
const Arch kStep35{.name = "step35",
                   .keys = kKeys,
                   .tensors = kGatedQkMoeTensors,
                   .globals = kGlobals,
                   .defaults = defaults,
                   .finish = finish,
                   .build_layer = build_layer};

}  // namespace stoker::model::step35
