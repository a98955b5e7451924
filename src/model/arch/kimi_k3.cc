// Kimi K3: three of four layers have Kimi Delta Attention whose decay is bounded, the others latent attention without
// any rotation and with a gate on what it gives. Blocks read all residuals that are kept, a new one being begun every
// few layers. The first layers are dense, the others have experts of a dimension of their own, chosen by sigmoid with a
// selection bias, and shared ones of the model's. All feed-forward blocks bound both factors.
// Source: Kimi K3 as its authors published it; Kimi Linear (arXiv:2510.26692).
#include "base/str_cat.h"
#include "model/arch/latent.h"
#include "model/plan.h"

namespace stoker::model::kimi_k3 {
namespace {

constexpr double kMaxDim = 65536;

constexpr KeySpec kKeys[] = {
    kHeadsOrNone,
    {.key = "attention.kv_lora_rank", .field = &ModelConfig::latent_dim, .required = true, .min = 1, .max = 1024},
    {.key = "attention.q_lora_rank", .field = &ModelConfig::q_latent_dim, .max = kMaxLatent},
    {.key = "attention.key_length_mla", .field = &ModelConfig::head_k_dim, .required = true, .min = 1, .max = kMaxDim},
    {.key = "attention.value_length_mla",
     .field = &ModelConfig::head_v_dim,
     .required = true,
     .min = 1,
     .max = kMaxDim},
    {.key = "rope.dimension_count", .field = &ModelConfig::rope_dims, .required = true, .min = 1, .max = kMaxDim},
    kConvTaps,
    {.key = "kda.head_dim", .field = &ModelConfig::state_k_dim, .required = true, .min = 1, .max = kMaxDim},
    {.key = "kda.gate_lower_bound", .field = &ModelConfig::decay_bound, .required = true, .min = -80, .max = -1e-3},
    {.key = "activation.situ_beta", .field = &ModelConfig::situ_beta, .required = true, .min = 1e-3, .max = 1e6},
    {.key = "activation.situ_linear_beta", .field = &ModelConfig::situ_linear_beta, .required = true, .max = 1e6},
    {.key = "attn_res.block_size", .field = &ModelConfig::kept_interval, .required = true, .max = 1e6},
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    {.key = "expert_latent_length", .field = &ModelConfig::expert_latent_dim, .max = 1 << 24},
    {.key = "expert_shared_count", .field = &ModelConfig::n_shared, .max = kMaxExperts},
    {.key = "expert_gating_func", .field = &ModelConfig::gating, .required = true, .min = 1, .max = 4},
    kLeadingDense,
    kWeightsNorm,
    kWeightsScale,
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_res_score.weight", &LayerWeights::attn_score, Dim::kModel, Dim::kModel, Need::kScored},
    {"ffn_res_score.weight", &LayerWeights::ffn_score, Dim::kModel, Dim::kModel, Need::kScored},
    of_recurrent({"attn_q.weight", &LayerWeights::wq, Dim::kStateInner}),
    of_recurrent({"attn_k.weight", &LayerWeights::wk, Dim::kStateInner}),
    of_recurrent({"attn_v.weight", &LayerWeights::wv, Dim::kStateInner}),
    of_recurrent(with_unit({"ssm_conv1d_q.weight", &LayerWeights::conv_q, Dim::kStateInner, Dim::kTaps})),
    of_recurrent(with_unit({"ssm_conv1d_k.weight", &LayerWeights::conv_k, Dim::kStateInner, Dim::kTaps})),
    of_recurrent(with_unit({"ssm_conv1d_v.weight", &LayerWeights::conv_v, Dim::kStateInner, Dim::kTaps})),
    of_recurrent({"ssm_f_a.weight", &LayerWeights::decay_down, Dim::kStateValue}),
    of_recurrent({"ssm_f_b.weight", &LayerWeights::decay, Dim::kStateInner, Dim::kStateValue}),
    of_recurrent({"ssm_dt.bias", &LayerWeights::b_decay, Dim::kStateInner}),
    of_recurrent({"ssm_a", &LayerWeights::decay_a, Dim::kStateHeads}),
    of_recurrent({"ssm_beta.weight", &LayerWeights::beta, Dim::kStateHeads}),
    of_recurrent({"ssm_g.weight", &LayerWeights::state_gate, Dim::kStateInner}),
    of_recurrent({"ssm_norm.weight", &LayerWeights::state_norm, Dim::kStateValue}),
    of_recurrent({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kStateInner}),
    of_attention({"attn_q.weight", &LayerWeights::wq, Dim::kHeadsQ, Dim::kModel, Need::kQPlain}),
    of_attention({"attn_q_a.weight", &LayerWeights::q_down, Dim::kQLatent, Dim::kModel, Need::kQLatent}),
    of_attention({"attn_q_a_norm.weight", &LayerWeights::q_latent_norm, Dim::kQLatent, Dim::kModel, Need::kQLatent}),
    of_attention({"attn_q_b.weight", &LayerWeights::wq, Dim::kHeadsQ, Dim::kQLatent, Need::kQLatent}),
    of_attention({"attn_kv_a_mqa.weight", &LayerWeights::kv_down, Dim::kLatentAndRope}),
    of_attention({"attn_kv_a_norm.weight", &LayerWeights::latent_norm, Dim::kLatent}),
    of_attention(
        {"attn_k_b.weight", &LayerWeights::k_up, Dim::kLatent, Dim::kHeadPlain, Need::kUnlessJoined, Dim::kHeads}),
    of_attention(
        {"attn_v_b.weight", &LayerWeights::v_up, Dim::kHeadValue, Dim::kLatent, Need::kUnlessJoined, Dim::kHeads}),
    of_attention({"attn_kv_b.weight", &LayerWeights::kv_up, Dim::kHeadsKV, Dim::kLatent, Need::kOptional}),
    of_attention({"attn_gate.weight", &LayerWeights::attn_gate, Dim::kHeadsValue, Dim::kModel, Need::kOptional}),
    of_attention({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kHeadsValue}),
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_routed_down.weight", &LayerWeights::routed_down, Dim::kExpertModel, Dim::kModel, Need::kRoutedLatent},
    {"ffn_routed_norm.weight", &LayerWeights::routed_norm, Dim::kExpertModel, Dim::kModel, Need::kRoutedLatentOptional},
    {"ffn_routed_up.weight", &LayerWeights::routed_up, Dim::kModel, Dim::kExpertModel, Need::kRoutedLatent},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kExpertModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kExpertModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kExpertModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
};

constexpr GlobalTensorSpec kGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab},
    {"output_res_score.weight", &Weights::output_score, Dim::kModel, Dim::kModel, Need::kScored},
};

Status finish(ModelConfig& config) {
  STOKER_TRY_STATUS(finish_kimi(config));
  const int64_t n_kept = config.n_kept(config.n_layers);
  if (n_kept <= kMaxKept) return Ok{};
  return Error{ErrorCode::kUnsupported,
               str_cat("key kimi-k3.attn_res.block_size is ", config.kept_interval, ": of ", config.n_layers,
                       " layers ", n_kept, " residuals would be kept; this version keeps ", kMaxKept)};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  const ModelConfig& config = plan.config();
  const bool begins = config.kept_interval > 0 && layer % config.kept_interval == 0;
  plan.read_kept({.score = &w.attn_score, .n = config.n_kept(layer), .keeps = begins});
  if (config.is_recurrent(layer)) {
    plan.kimi_delta(w, layer);
  } else {
    plan.latent_attention(w, layer);
  }
  plan.read_kept({.score = &w.ffn_score, .n = config.n_kept(layer + 1), .begins = begins});
  plan.feed_forward(w, layer, Activation::kSitu);
}

}  // namespace

extern const Arch kKimiK3;
const Arch kKimiK3{.name = "kimi-k3",
                   .keys = kKeys,
                   .tensors = kTensors,
                   .globals = kGlobals,
                   .defaults = [](ModelConfig&) {},
                   .finish = finish,
                   .build_layer = build_layer};

}  // namespace stoker::model::kimi_k3
