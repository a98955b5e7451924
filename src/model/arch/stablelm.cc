// Families with LayerNorm, rotation of halves (of a part of each head) and SwiGLU: StableLM, whose 12B has a norm with
// a gain of its own on each q and k head and feeds attention and feed-forward with one norm; Orion. Sources: Stable LM
// 2 (arXiv:2402.17834), Orion-14B (arXiv:2401.12246).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::stablelm {
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
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHeads, Dim::kHead, Need::kOptional},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kKvHeads, Dim::kHead, Need::kOptional},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_norm.bias", &LayerWeights::b_ffn_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.layer_norm = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true, .parallel = !w.ffn_norm});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kStableLm, kOrion;
const Arch kStableLm{.name = "stablelm",
                     .keys = {},
                     .tensors = kTensors,
                     .globals = kBiasedNormGlobals,
                     .defaults = defaults,
                     .finish = nullptr,
                     .build_layer = build_layer};
const Arch kOrion{.name = "orion",
                  .keys = {},
                  .tensors = kBiasedNormGatedTensors,
                  .globals = kBiasedNormGlobals,
                  .defaults = defaults,
                  .finish = nullptr,
                  .build_layer = build_layer};

}  // namespace stoker::model::stablelm
