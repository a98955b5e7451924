// Arcee's AFM 4.5B: Llama's attention, a feed-forward block without a gate whose activation is a squared ReLU.
// Source: the published configuration (AFM-4.5B, 2025). Files keep q and k rows permuted for this rotation.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::arcee {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.mlp(w, layer, {.activation = Activation::kReluSquared});
}

}  // namespace

extern const Arch kArcee;
const Arch kArcee{.name = "arcee",
                  .keys = {},
                  .tensors = kTensors,
                  .globals = kTiedGlobals,
                  .defaults = defaults,
                  .finish = nullptr,
                  .build_layer = build_layer};

}  // namespace stoker::model::arcee
