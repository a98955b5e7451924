// GLM-4-0414 (9B, 32B) and GLM-Z1: norms before and after each block, half of each head rotated, gate and up in one
// matrix. Layers that predict further tokens stay unread.
// Source: the published configuration (GLM-4-0414, 2025).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::glm4 {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"post_attention_norm.weight", &LayerWeights::post_attn_norm, Dim::kModel},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_up.weight", &LayerWeights::gate_up, Dim::kTwoFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"post_ffw_norm.weight", &LayerWeights::post_ffn_norm, Dim::kModel},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.post_norm = true});
  plan.gated_mlp(w, layer, {.post_norm = true});
}

}  // namespace

extern const Arch kGlm4;
const Arch kGlm4{.name = "glm4",
                 .keys = {},
                 .tensors = kTensors,
                 .globals = kTiedGlobals,
                 .defaults = defaults,
                 .finish = nullptr,
                 .build_layer = build_layer};

}  // namespace stoker::model::glm4
