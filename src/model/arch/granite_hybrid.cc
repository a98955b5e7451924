// Granite 4, dense and with experts: most layers have a Mamba-2 scan in place of attention, the others attention, which
// need not rotate; Granite's four multipliers. With experts softmax gating, renormalized, and a shared one where the
// file has it.
// Source: Mamba-2 (arXiv:2405.21060); Granite 4.0 as its authors published it.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::granite_hybrid {
namespace {

constexpr KeySpec kKeys[] = {
    kHeadsOrNone,
    kConvTaps,
    kStateSize,
    kStateGroups,
    kStateHeadCount,
    kStateInnerSize,
    {.key = "logit_scale", .field = &ModelConfig::logit_divisor, .required = true, .min = 1e-6, .max = 1e6},
    {.key = "residual_scale", .field = &ModelConfig::residual_scale, .max = 1e6},
    {.key = "embedding_scale", .field = &ModelConfig::embedding_scale, .max = 1e6},
    {.key = "attention.scale", .field = &ModelConfig::attn_scale, .max = 1e6},
    {.key = "rope.scaling.finetuned", .field = &ModelConfig::rotates},
    {.key = "expert_count", .field = &ModelConfig::n_experts, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .max = kMaxExperts},
    kSharedWidth,
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    of_recurrent({"ssm_in.weight", &LayerWeights::state_in, Dim::kScanIn}),
    of_recurrent({"ssm_conv1d.weight", &LayerWeights::conv, Dim::kConvChannels, Dim::kTaps}),
    of_recurrent({"ssm_conv1d.bias", &LayerWeights::b_conv, Dim::kConvChannels, Dim::kModel, Need::kOptional}),
    of_recurrent({"ssm_dt.bias", &LayerWeights::b_decay, Dim::kStateHeads}),
    of_recurrent(with_unit({"ssm_a", &LayerWeights::decay_a, Dim::kStateHeads})),
    of_recurrent(with_unit({"ssm_d", &LayerWeights::state_skip, Dim::kStateHeads})),
    of_recurrent({"ssm_norm.weight", &LayerWeights::state_norm, Dim::kKeyHeads, Dim::kGroupInner}),
    of_recurrent({"ssm_out.weight", &LayerWeights::wo, Dim::kModel, Dim::kStateInner}),
    of_attention({"attn_q.weight", &LayerWeights::wq, Dim::kQ}),
    of_attention({"attn_k.weight", &LayerWeights::wk, Dim::kK}),
    of_attention({"attn_v.weight", &LayerWeights::wv, Dim::kV}),
    of_attention({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut}),
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.renormalize = true;
}

Status finish(ModelConfig& config) {
  STOKER_TRY_STATUS(finish_scan(config));
  STOKER_TRY_STATUS(recurrent_where_no_heads(config));
  return check_recurrence(config);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  if (plan.config().is_recurrent(layer)) {
    plan.scan(w, layer);
  } else {
    plan.attention(w, layer, {});
  }
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kGraniteHybrid;
const Arch kGraniteHybrid{.name = "granitehybrid",
                          .keys = kKeys,
                          .tensors = kTensors,
                          .globals = kTiedGlobals,
                          .defaults = defaults,
                          .finish = finish,
                          .build_layer = build_layer};

}  // namespace stoker::model::granite_hybrid
