// Kimi Linear: three of four layers have Kimi Delta Attention, a delta rule whose state decays row by row, the fourth
// latent attention without any rotation. The first layers are dense, the others have experts, chosen by sigmoid with a
// selection bias, and a shared one.
// Source: Kimi Linear (arXiv:2510.26692).
#include "model/arch/latent.h"
#include "model/plan.h"

namespace stoker::model::kimi_linear {
namespace {

constexpr double kMaxDim = 65536;

constexpr KeySpec kKeys[] = {
    kHeadsOrNone,
    {.key = "attention.kv_lora_rank", .field = &ModelConfig::latent_dim, .required = true, .min = 1, .max = 1024},
    {.key = "attention.key_length_mla", .field = &ModelConfig::head_k_dim, .required = true, .min = 1, .max = kMaxDim},
    {.key = "attention.value_length_mla",
     .field = &ModelConfig::head_v_dim,
     .required = true,
     .min = 1,
     .max = kMaxDim},
    {.key = "rope.dimension_count", .field = &ModelConfig::rope_dims, .required = true, .min = 1, .max = kMaxDim},
    kConvTaps,
    {.key = "kda.head_dim", .field = &ModelConfig::state_k_dim, .required = true, .min = 1, .max = kMaxDim},
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "expert_shared_count", .field = &ModelConfig::n_shared, .max = kMaxExperts},
    {.key = "expert_gating_func", .field = &ModelConfig::gating, .required = true, .min = 1, .max = 4},
    kLeadingDense,
    kWeightsScale,
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    of_recurrent({"attn_qkv.weight", &LayerWeights::wqkv, Dim::kConvChannels, Dim::kModel, Need::kOptional}),
    of_recurrent({"attn_q.weight", &LayerWeights::wq, Dim::kStateInner, Dim::kModel, Need::kUnlessFused}),
    of_recurrent({"attn_k.weight", &LayerWeights::wk, Dim::kStateInner, Dim::kModel, Need::kUnlessFused}),
    of_recurrent({"attn_v.weight", &LayerWeights::wv, Dim::kStateInner, Dim::kModel, Need::kUnlessFused}),
    of_recurrent(with_unit({"ssm_conv1d_q.weight", &LayerWeights::conv_q, Dim::kStateInner, Dim::kTaps})),
    of_recurrent(with_unit({"ssm_conv1d_k.weight", &LayerWeights::conv_k, Dim::kStateInner, Dim::kTaps})),
    of_recurrent(with_unit({"ssm_conv1d_v.weight", &LayerWeights::conv_v, Dim::kStateInner, Dim::kTaps})),
    of_recurrent({"ssm_f_a.weight", &LayerWeights::decay_down, Dim::kStateValue}),
    of_recurrent({"ssm_f_b.weight", &LayerWeights::decay, Dim::kStateInner, Dim::kStateValue}),
    of_recurrent({"ssm_dt.bias", &LayerWeights::b_decay, Dim::kStateInner}),
    of_recurrent(with_unit({"ssm_a", &LayerWeights::decay_a, Dim::kStateHeads})),
    of_recurrent({"ssm_beta.weight", &LayerWeights::beta, Dim::kStateHeads}),
    of_recurrent({"ssm_g_a.weight", &LayerWeights::state_gate_down, Dim::kStateValue}),
    of_recurrent({"ssm_g_b.weight", &LayerWeights::state_gate, Dim::kStateInner, Dim::kStateValue}),
    of_recurrent({"ssm_norm.weight", &LayerWeights::state_norm, Dim::kStateValue}),
    of_recurrent({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kStateInner}),
    of_attention({"attn_q.weight", &LayerWeights::wq, Dim::kHeadsQ}),
    of_attention({"attn_kv_a_mqa.weight", &LayerWeights::kv_down, Dim::kLatentAndRope}),
    of_attention({"attn_kv_a_norm.weight", &LayerWeights::latent_norm, Dim::kLatent}),
    of_attention(
        {"attn_k_b.weight", &LayerWeights::k_up, Dim::kLatent, Dim::kHeadPlain, Need::kUnlessJoined, Dim::kHeads}),
    of_attention(
        {"attn_v_b.weight", &LayerWeights::v_up, Dim::kHeadValue, Dim::kLatent, Need::kUnlessJoined, Dim::kHeads}),
    of_attention({"attn_kv_b.weight", &LayerWeights::kv_up, Dim::kHeadsKV, Dim::kLatent, Need::kOptional}),
    of_attention({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kHeadsValue}),
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
};

void defaults(ModelConfig& config) {
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.renormalize = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  if (plan.config().is_recurrent(layer)) {
    plan.kimi_delta(w, layer);
  } else {
    plan.latent_attention(w, layer);
  }
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kKimiLinear;
const Arch kKimiLinear{.name = "kimi-linear",
                       .keys = kKeys,
                       .tensors = kTensors,
                       .globals = kUntiedGlobals,
                       .defaults = defaults,
                       .finish = finish_kimi,
                       .build_layer = build_layer};

}  // namespace stoker::model::kimi_linear
