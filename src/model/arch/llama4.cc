// Llama 4, text: three of four layers see their own chunk of 8192 positions and rotate, with norms of q and k without a
// gain after that; the fourth sees all, does not rotate, and its queries grow with the position. One expert of each
// n-th layer reads a token times its weight, beside a shared one. Source: Llama 4 as its authors published it.
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::llama4 {
namespace {

constexpr int64_t kChunk = 8192;
constexpr int64_t kExpertsOfMaverick = 128;  // No key says that it has no norms of q and k.

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "interleave_moe_layer_step",
     .field = &ModelConfig::expert_interval,
     .required = true,
     .min = 1,
     .max = 512},
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .max = 1 << 30},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.early_weights = config.chunked = true;
  config.n_shared = 1;
  config.window = config.attn_temperature_length = kChunk;
  config.sliding_period = 4;
  config.attn_temperature = 0.1F;
  config.attn_temperature_offset = 1;
}

Status finish(ModelConfig& config) {
  if (config.n_used_experts == 1 || config.n_experts == 0) return Ok{};
  return Error{ErrorCode::kUnsupported, str_cat("key llama4.expert_used_count is ", config.n_used_experts,
                                                "; this version runs llama4 with one expert per token")};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  const ModelConfig& config = plan.config();
  const bool rotates = config.window_of(layer) != 0 || !config.any_sliding();
  plan.attention(w, layer,
                 {.plain_late_qk_norm = rotates && config.n_experts != kExpertsOfMaverick,
                  .rotate = rotates,
                  .temperature = !rotates});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kLlama4;
const Arch kLlama4{.name = "llama4",
                   .keys = kKeys,
                   .tensors = kGqaTensors,
                   .globals = kTiedGlobals,
                   .defaults = defaults,
                   .finish = finish,
                   .build_layer = build_layer};

}  // namespace stoker::model::llama4
