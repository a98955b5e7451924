// Seed-OSS 36B: Llama's block with biases on q, k and v and rotation of halves.
// Source: the published configuration (Seed-OSS, 2025).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::seed_oss {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"post_attention_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},  // whatever its name: before the feed-forward
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kHalves; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kSeedOss;
const Arch kSeedOss{.name = "seed_oss",
                    .keys = {},
                    .tensors = kTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};

}  // namespace stoker::model::seed_oss
