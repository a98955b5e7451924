// Apertus 8B and 70B: Llama's attention with rotation of halves and norms on q and k heads, a feed-forward block
// without a gate whose activation, xIELU, has parameters of its own in each layer. Sources: Apertus (arXiv:2509.14233),
// xIELU (arXiv:2411.13010).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::apertus {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_output.bias", &LayerWeights::bo, Dim::kModel, Dim::kModel, Need::kOptional},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.xielu.resize(1);  // to be read
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true});
  plan.mlp(w, layer, {.activation = Activation::kXielu});
}

}  // namespace

extern const Arch kApertus;
const Arch kApertus{.name = "apertus",
                    .keys = {},
                    .tensors = kTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};

}  // namespace stoker::model::apertus
