// The first Qwen: q, k and v in one matrix with biases, rotation of halves, SwiGLU of half the width that the key says.
// Source: Qwen technical report (arXiv:2309.16609).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::qwen {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv},
    {"attn_qkv.bias", &LayerWeights::bqkv, Dim::kQkv},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kHalfFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kHalfFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kHalfFf},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kHalves; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kQwen;
const Arch kQwen{.name = "qwen",
                 .keys = {},
                 .tensors = kTensors,
                 .globals = kUntiedGlobals,
                 .defaults = defaults,
                 .finish = nullptr,
                 .build_layer = build_layer};

}  // namespace stoker::model::qwen
