// Granite 3, dense and with experts: Llama's block with four multipliers, of embeddings, of what each block adds, of
// scores and, as a divisor, of logits. With experts softmax gating, renormalized, and where the file has it a shared
// one. Source: Granite 3.0 language models (2024). Files keep q and k rows permuted for this rotation.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::granite {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "logit_scale", .field = &ModelConfig::logit_divisor, .required = true, .min = 1e-6, .max = 1e6},
    {.key = "residual_scale", .field = &ModelConfig::residual_scale, .max = 1e6},
    {.key = "embedding_scale", .field = &ModelConfig::embedding_scale, .max = 1e6},
    {.key = "attention.scale", .field = &ModelConfig::attn_scale, .max = 1e6},
    {.key = "expert_count", .field = &ModelConfig::n_experts, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .max = kMaxExperts},
    kSharedWidth,
    // Of dense models only; last, so that those with experts take the table without it.
    {.key = "rope.scaling.finetuned", .field = &ModelConfig::rotates},
};
constexpr std::span<const KeySpec> kDenseKeys = kKeys;
constexpr std::span<const KeySpec> kMoeKeys = kDenseKeys.first(kDenseKeys.size() - 1);

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.renormalize = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kGranite, kGraniteMoe;
const Arch kGranite{.name = "granite",
                    .keys = kDenseKeys,
                    .tensors = kGqaTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};
const Arch kGraniteMoe{.name = "granitemoe",
                       .keys = kMoeKeys,
                       .tensors = kGqaTensors,
                       .globals = kTiedGlobals,
                       .defaults = defaults,
                       .finish = nullptr,
                       .build_layer = build_layer};

}  // namespace stoker::model::granite
