// Qwen3 dense: as Qwen2 without biases, with an RMS norm on each q and k head before the rotation.
// Source: Qwen3 technical report (arXiv:2505.09388).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::qwen3 {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.rank_softmax = true;  // of rerankers, whose head is the rows of the output matrix that say yes and no
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true});
  plan.gated_mlp(w, layer, {.activation = Activation::kSilu});
}

}  // namespace

extern const Arch kQwen3, kQwen3Vl;
const Arch kQwen3{.name = "qwen3",
                  .keys = {},
                  .tensors = kTensors,
                  .globals = kRankingGlobals,
                  .defaults = defaults,
                  .finish = nullptr,
                  .build_layer = build_layer};
const Arch kQwen3Vl{.name = "qwen3vl",
                    .keys = {},
                    .tensors = kTensors,
                    .globals = kRankingGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};

}  // namespace stoker::model::qwen3
