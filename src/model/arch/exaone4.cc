// EXAONE 4: norms after each block only, and on q and k heads. The 32B has a window on three of four layers and rotates
// those only; the others see everything and rotate everywhere.
// Source: EXAONE 4.0 (arXiv:2507.11407).
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::exaone4 {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};

constexpr TensorSpec kTensors[] = {
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead},
    {"post_attention_norm.weight", &LayerWeights::post_attn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"post_ffw_norm.weight", &LayerWeights::post_ffn_norm, Dim::kModel},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.sliding_period = 4;
}

Status finish(ModelConfig& config) {
  constexpr int64_t kLayersOf32B = 64;
  if (config.n_layers != kLayersOf32B || config.window > 0) return Ok{};
  return Error{ErrorCode::kCorrupt, str_cat("required key exaone4.attention.sliding_window is missing: models of ",
                                            kLayersOf32B, " layers have a window")};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  const ModelConfig& config = plan.config();
  plan.attention(w, layer,
                 {.pre_norm = false,
                  .qk_norm = true,
                  .rotate = !config.any_sliding() || config.window_of(layer) != 0,
                  .post_norm = true});
  plan.gated_mlp(w, layer, {.pre_norm = false, .post_norm = true});
}

}  // namespace

extern const Arch kExaone4;
const Arch kExaone4{.name = "exaone4",
                    .keys = kKeys,
                    .tensors = kTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = finish,
                    .build_layer = build_layer};

}  // namespace stoker::model::exaone4
