// Llama 1 to 3.3, SmolLM 1 and 2, Mistral 7B and Nemo, TinyLlama, Yi and other models of the same block: pre-norm,
// grouped-query attention, rotation of neighbouring pairs, SwiGLU. Mixtral: the same with experts.
// Source: LLaMA (arXiv:2302.13971), Llama 3 (arXiv:2407.21783), Mixtral (arXiv:2401.04088). Files keep q and k rows
// permuted for this rotation.
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::llama {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "expert_count", .field = &ModelConfig::n_experts, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .max = kMaxExperts},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.renormalize = true;
}

Status finish(ModelConfig& config) {
  const int64_t head = config.k_dim ? config.k_dim : config.dim / config.n_heads[0];
  if (config.rope_dims != 0 && config.rope_dims != head) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("key llama.rope.dimension_count is ", config.rope_dims, ", wanted the head dimension ", head)};
  }
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kLlama;
const Arch kLlama{.name = "llama",
                  .keys = kKeys,
                  .tensors = kGqaTensors,
                  .globals = kTiedGlobals,
                  .defaults = defaults,
                  .finish = finish,
                  .build_layer = build_layer};

}  // namespace stoker::model::llama
