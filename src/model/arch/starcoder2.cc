// StarCoder2: LayerNorm with bias, biases everywhere, rotation of halves, a feed-forward block without a gate.
// Source: StarCoder2 (arXiv:2402.19173).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_norm.bias", &LayerWeights::b_attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_output.bias", &LayerWeights::bo, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_norm.bias", &LayerWeights::b_ffn_norm, Dim::kModel},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_up.bias", &LayerWeights::b_up, Dim::kFf, Dim::kModel, Need::kOptional},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"ffn_down.bias", &LayerWeights::b_down, Dim::kModel, Dim::kModel, Need::kOptional},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.layer_norm = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.mlp(w, layer, {.activation = Activation::kGelu});
}

}  // namespace

extern const Arch kStarCoder2;
const Arch kStarCoder2{.name = "starcoder2",
                       .keys = {},
                       .tensors = kTensors,
                       .globals = kBiasedNormGlobals,
                       .defaults = defaults,
                       .finish = nullptr,
                       .build_layer = build_layer};

}  // namespace stoker::model
