// Granite 3, dense and with experts: Llama's block with four multipliers, of embeddings, of what each block adds, of
// scores and, as a divisor, of logits. With experts softmax gating, renormalized, and where the file has it a shared
// one. granite_swa has windows and a sink logit per head, and not all of its layers need rotate.
// Source: Granite 3.0 language models (2024). Files keep q and k rows permuted for this rotation.
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
constexpr KeySpec kWindowKeys[] = {
    kKeys[0],
    kKeys[1],
    kKeys[2],
    kKeys[3],
    kKeys[4],
    kKeys[5],
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "attention.rope_pattern", .field = &ModelConfig::rope_layers, .max = 1},
};

constexpr TensorSpec kWindowTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_sinks.weight", &LayerWeights::sinks, Dim::kHeads},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_output.bias", &LayerWeights::bo, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate.bias", &LayerWeights::b_gate, Dim::kFf, Dim::kModel, Need::kOptional},
    {"ffn_up.bias", &LayerWeights::b_up, Dim::kFf, Dim::kModel, Need::kOptional},
    {"ffn_down.bias", &LayerWeights::b_down, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExpertsUnlessFused},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExpertsUnlessFused},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.renormalize = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.feed_forward(w, layer);
}

void window_defaults(ModelConfig& config) {
  defaults(config);
  config.pattern_required = true;
}
void window_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.rotate = plan.config().turns(layer), .sinks = true});
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kGranite, kGraniteMoe, kGraniteSwa;
const Arch kGraniteSwa{.name = "granite_swa",
                       .keys = kWindowKeys,
                       .tensors = kWindowTensors,
                       .globals = kTiedGlobals,
                       .defaults = window_defaults,
                       .finish = nullptr,
                       .build_layer = window_layer};
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
