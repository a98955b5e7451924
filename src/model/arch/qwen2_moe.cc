// Qwen1.5-MoE and Qwen2-57B-A14B: Qwen2's attention, routed experts and one shared expert that has a weight of its own.
// Source: Qwen2 technical report (arXiv:2407.10671).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::qwen2_moe {
namespace {

constexpr KeySpec kKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    {.key = "expert_feed_forward_length", .field = &ModelConfig::expert_ff_dim, .max = 1 << 24},
    kSharedWidth,
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf},
    {"ffn_gate_inp_shexp.weight", &LayerWeights::shared_weight, Dim::kOne},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf},
};

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kHalves; }

Status finish(ModelConfig& config) {
  if (config.expert_ff_dim == 0) config.expert_ff_dim = config.ff_dim[0] / config.n_used_experts;
  if (config.shared_ff_dim == 0) config.shared_ff_dim = config.ff_dim[0];
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.moe(w, layer, {});
}

}  // namespace

extern const Arch kQwen2Moe;
const Arch kQwen2Moe{.name = "qwen2moe",
                     .keys = kKeys,
                     .tensors = kTensors,
                     .globals = kUntiedGlobals,
                     .defaults = defaults,
                     .finish = finish,
                     .build_layer = build_layer};

}  // namespace stoker::model::qwen2_moe
