// ChatGLM 3, GLM-4 of 2024 and GLM-Edge: pre-norm, q, k and v in one matrix with biases, gate and up in another, half
// of each head rotated. Source: ChatGLM (arXiv:2406.12793).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::chatglm {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_qkv.bias", &LayerWeights::bqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_up.weight", &LayerWeights::gate_up, Dim::kTwoFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kChatGlm;
const Arch kChatGlm{.name = "chatglm",
                    .keys = {},
                    .tensors = kTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};

}  // namespace stoker::model::chatglm
