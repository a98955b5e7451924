// MiniCPM 1 to 4 (text): Llama's block with multipliers of embeddings, of what each block adds and, as a divisor, of
// logits; files from before the keys have those of the first models. With experts as Mixtral has them; long-rope in 4.
// Source: MiniCPM (arXiv:2404.06395), MiniCPM4 (arXiv:2506.07900).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::minicpm {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "logit_scale", .field = &ModelConfig::logit_divisor, .max = 1e6},
    {.key = "residual_scale", .field = &ModelConfig::residual_scale, .max = 1e6},
    {.key = "embedding_scale", .field = &ModelConfig::embedding_scale, .max = 1e6},
    {.key = "expert_count", .field = &ModelConfig::n_experts, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .max = kMaxExperts},
};

constexpr float kByShape = -1;  // until the key or `finish` says it

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.renormalize = true;
  config.embedding_scale = 12;
  config.residual_scale = config.logit_divisor = kByShape;
}

Status finish(ModelConfig& config) {
  if (config.residual_scale == kByShape) {
    config.residual_scale = 1.4f / __builtin_sqrtf(static_cast<float>(config.n_layers));
  }
  if (config.logit_divisor == kByShape) config.logit_divisor = static_cast<float>(config.dim) / 256;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kMiniCpm;
const Arch kMiniCpm{.name = "minicpm",
                    .keys = kKeys,
                    .tensors = kGqaTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = finish,
                    .build_layer = build_layer};

}  // namespace stoker::model::minicpm
