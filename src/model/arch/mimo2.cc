// MiMo-V2: layers with a window have head counts and a rotation of their own, and some a sink logit per head; values
// are shorter than keys and scaled; dense layers first, then sigmoid gating with a selection bias, renormalized. Layers
// that predict further tokens stay unread. Source: the published configuration (MiMo-V2-Flash, 2025).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::mimo2 {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    kLeadingDense,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
    {.key = "attention.value_scale", .field = &ModelConfig::value_scale, .max = 1e3},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_sinks.weight", &LayerWeights::sinks, Dim::kHeads, Dim::kModel, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.renormalize = true;
  config.rope_base_swa = 10000;
  config.sliding_period = 1;  // none: a list says which do
}

Status finish(ModelConfig& config) {
  if (config.any_sliding()) return Ok{};
  return Error{ErrorCode::kCorrupt, "required key mimo2.attention.sliding_window_pattern is missing, wanted a list"};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.sinks = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kMimo2;
const Arch kMimo2{.name = "mimo2",
                  .keys = kKeys,
                  .tensors = kTensors,
                  .globals = kUntiedGlobals,
                  .defaults = defaults,
                  .finish = finish,
                  .build_layer = build_layer};

}  // namespace stoker::model::mimo2
