// Nemotron-H, Nano 2 and 3: each layer is one block, a Mamba-2 scan, attention without rotation, or a feed-forward
// without a gate (max(x, 0) squared), of one width or of experts that may have a dimension of their own.
// Source: Nemotron-H (arXiv:2504.03624), Nemotron 3 as its authors published it; Mamba-2 (arXiv:2405.21060).
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::nemotron_h {
namespace {

constexpr KeySpec kKeys[] = {
    kHeadsOrNone,
    // A list: 0 where a layer is not a feed-forward block.
    {.key = "feed_forward_length", .field = &ModelConfig::ff_dim, .required = true, .max = 1 << 24},
    kConvTaps,
    kStateSize,
    kStateGroups,
    kStateHeadCount,
    kStateInnerSize,
    // Files have the second beside the first, or the first alone.
    {.key = "attention.layer_norm_epsilon", .field = &ModelConfig::norm_eps, .required = true, .min = 1e-12, .max = 1},
    {.key = "attention.layer_norm_rms_epsilon", .field = &ModelConfig::norm_eps, .min = 1e-12, .max = 1},
    // Of those with experts.
    kExpertCount,
    kExpertUsedCount,
    {.key = "expert_feed_forward_length", .field = &ModelConfig::expert_ff_dim, .max = 1 << 24},
    {.key = "moe_latent_size", .field = &ModelConfig::expert_latent_dim, .max = 1 << 24},
    {.key = "expert_shared_count", .field = &ModelConfig::n_shared, .max = kMaxExperts},
    kSharedWidth,
    {.key = "expert_group_count", .field = &ModelConfig::n_groups, .max = kMaxExperts},
    {.key = "expert_group_used_count", .field = &ModelConfig::n_used_groups, .max = kMaxExperts},
    kGatingFunc,
    kWeightsNorm,
    kWeightsScale,
};
constexpr size_t kDenseKeyCount = 9;

constexpr TensorSpec kTensors[] = {
    of_recurrent({"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel}),
    of_recurrent({"ssm_in.weight", &LayerWeights::state_in, Dim::kScanIn}),
    of_recurrent({"ssm_conv1d.weight", &LayerWeights::conv, Dim::kConvChannels, Dim::kTaps}),
    of_recurrent({"ssm_conv1d.bias", &LayerWeights::b_conv, Dim::kConvChannels, Dim::kModel, Need::kOptional}),
    of_recurrent({"ssm_dt.bias", &LayerWeights::b_decay, Dim::kStateHeads}),
    of_recurrent(with_unit({"ssm_a", &LayerWeights::decay_a, Dim::kStateHeads})),
    of_recurrent(with_unit({"ssm_d", &LayerWeights::state_skip, Dim::kStateHeads})),
    of_recurrent({"ssm_norm.weight", &LayerWeights::state_norm, Dim::kKeyHeads, Dim::kGroupInner}),
    of_recurrent({"ssm_out.weight", &LayerWeights::wo, Dim::kModel, Dim::kStateInner}),
    of_attention({"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel}),
    of_attention({"attn_q.weight", &LayerWeights::wq, Dim::kQ}),
    of_attention({"attn_k.weight", &LayerWeights::wk, Dim::kK}),
    of_attention({"attn_v.weight", &LayerWeights::wv, Dim::kV}),
    of_attention({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut}),
    of_stateless({"attn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel}),
    of_stateless({"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense}),
    of_stateless({"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense}),
    of_stateless({"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts}),
    of_stateless({"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kExperts}),
    of_stateless(
        {"ffn_latent_down.weight", &LayerWeights::routed_down, Dim::kExpertModel, Dim::kModel, Need::kRoutedLatent}),
    of_stateless(
        {"ffn_latent_up.weight", &LayerWeights::routed_up, Dim::kModel, Dim::kExpertModel, Need::kRoutedLatent}),
    of_stateless({"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kExpertModel, Need::kExperts}),
    of_stateless(
        {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kExpertModel, Dim::kExpertFf, Need::kExperts}),
    of_stateless({"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared}),
    of_stateless({"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared}),
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
}

Status finish(ModelConfig& config) {
  bool any = false;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    config.stateless_layers.values.push_back(config.ff_dim[layer] > 0);
    any |= config.ff_dim[layer] > 0;
  }
  if (!any) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("key ", config.arch->name, ".feed_forward_length is 0 in all layers; this version runs ",
                         config.arch->name, " with a feed-forward block in some")};
  }
  if (config.shared_ff_dim > 0) config.n_shared = 0;  // It is that of all shared experts together.
  STOKER_TRY_STATUS(finish_scan(config));
  STOKER_TRY_STATUS(recurrent_where_no_heads(config));
  return check_recurrence(config);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  constexpr Activation kActivation = Activation::kReluSquared;
  if (w.router) {
    plan.moe(w, layer, {.activation = kActivation});
  } else if (plan.config().is_stateless(layer)) {
    plan.mlp(w, layer, {.activation = kActivation});
  } else if (plan.config().is_recurrent(layer)) {
    plan.scan(w, layer);
  } else {
    plan.attention(w, layer, {.rotate = false});
  }
}

}  // namespace

extern const Arch kNemotronH, kNemotronHMoe;
const Arch kNemotronH{.name = "nemotron_h",
                      .keys = std::span(kKeys).first(kDenseKeyCount),
                      .tensors = kTensors,
                      .globals = kTiedGlobals,
                      .defaults = defaults,
                      .finish = finish,
                      .build_layer = build_layer};
const Arch kNemotronHMoe{.name = "nemotron_h_moe",
                         .keys = kKeys,
                         .tensors = kTensors,
                         .globals = kTiedGlobals,
                         .defaults = defaults,
                         .finish = finish,
                         .build_layer = build_layer};

}  // namespace stoker::model::nemotron_h
