// Qwen3 with experts (Qwen3-30B-A3B, 235B-A22B, Coder): Qwen3's attention, routed experts in every layer. JetBrains'
// Mellum 2 is the same with windows, whose layers do not scale their rotation.
// Source: Qwen3 technical report (arXiv:2505.09388).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::qwen3_moe {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    {.key = "expert_feed_forward_length", .field = &ModelConfig::expert_ff_dim, .max = 1 << 24},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf},
};

constexpr KeySpec kMellumKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.renormalize = true;
}

void mellum_defaults(ModelConfig& config) {
  defaults(config);
  config.sliding_period = 4;
  config.rope_swa_plain = true;
}

Status finish(ModelConfig& config) {
  if (config.expert_ff_dim == 0) config.expert_ff_dim = config.ff_dim[0] / config.n_used_experts;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true});
  plan.moe(w, layer, {});
}

}  // namespace

extern const Arch kQwen3Moe, kQwen3VlMoe, kMellum;
const Arch kMellum{.name = "mellum",
                   .keys = kMellumKeys,
                   .tensors = kTensors,
                   .globals = kUntiedGlobals,
                   .defaults = mellum_defaults,
                   .finish = nullptr,
                   .build_layer = build_layer};
const Arch kQwen3Moe{.name = "qwen3moe",
                     .keys = kKeys,
                     .tensors = kTensors,
                     .globals = kTiedGlobals,
                     .defaults = defaults,
                     .finish = finish,
                     .build_layer = build_layer};
const Arch kQwen3VlMoe{.name = "qwen3vlmoe",
                       .keys = kKeys,
                       .tensors = kTensors,
                       .globals = kTiedGlobals,
                       .defaults = defaults,
                       .finish = finish,
                       .build_layer = build_layer};

}  // namespace stoker::model::qwen3_moe
