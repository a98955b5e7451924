// Phi-3, Phi-3.5-mini, Phi-4 and Phi-4-mini: pre-norm, q, k and v in one matrix, gate and up in another, rotation of
// halves, in Phi-4-mini of three quarters of a head; long-rope where the file has its factors.
// Sources: Phi-3 (arXiv:2404.14219), LongRoPE (arXiv:2402.13753), Phi-4 (arXiv:2412.08905). The first Phi-3 with a
// context of 4096 has a window on all layers.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::phi3 {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .max = 1 << 30},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_up.weight", &LayerWeights::gate_up, Dim::kTwoFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kHalves; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kPhi3;
const Arch kPhi3{.name = "phi3",
                 .keys = kKeys,
                 .tensors = kTensors,
                 .globals = kTiedGlobals,
                 .defaults = defaults,
                 .finish = nullptr,
                 .build_layer = build_layer};

}  // namespace stoker::model::phi3
