// AFMoE (Arcee's Trinity): norms before and after each block and on q and k heads, a window on three of four layers,
// which alone rotate, a gate on what each head gives; dense layers first, then sigmoid gating with a selection bias and
// shared experts. Source: the published configuration (Trinity, 2025).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::afmoe {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    kSharedCount,
    kLeadingDense,
    kGatingFunc,
    kWeightsNorm,
    kWeightsScale,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead},
    {"attn_gate.weight", &LayerWeights::attn_gate, Dim::kAttnOut},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"post_attention_norm.weight", &LayerWeights::post_attn_norm, Dim::kModel},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
    {"post_ffw_norm.weight", &LayerWeights::post_ffn_norm, Dim::kModel},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.sliding_period = 4;
}

Status finish(ModelConfig& config) {
  config.embedding_scale = __builtin_sqrtf(static_cast<float>(config.dim));
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  const bool slides = plan.config().window_of(layer) != 0;
  plan.attention(w, layer, {.qk_norm = true, .rotate = slides, .post_norm = true});
  if (w.router) {
    plan.moe(w, layer, {.post_norm = true});
  } else {
    plan.gated_mlp(w, layer, {.post_norm = true});
  }
}

}  // namespace

extern const Arch kAfMoe;
const Arch kAfMoe{.name = "afmoe",
                  .keys = kKeys,
                  .tensors = kTensors,
                  .globals = kTiedGlobals,
                  .defaults = defaults,
                  .finish = finish,
                  .build_layer = build_layer};

}  // namespace stoker::model::afmoe
