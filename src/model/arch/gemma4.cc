// Gemma 4 (text): norms before and after each block, heads of one size in layers that slide and of another in those
// that see everything, norms of q, k and v, scores without a scale. The last layers may attend to keys and values of an
// earlier one; a layer may end with an input of its own, looked up by token; experts stand beside a dense branch.
// Source: the format's description and llama.cpp; the models' own code was not at hand.
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::gemma4 {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "attention.key_length_swa", .field = &ModelConfig::k_dim_swa, .required = true, .min = 1, .max = 65536},
    {.key = "attention.value_length_swa", .field = &ModelConfig::v_dim_swa, .required = true, .min = 1, .max = 65536},
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "attention.shared_kv_layers", .field = &ModelConfig::n_shared_kv, .max = 512},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
    {.key = "rope.dimension_count_swa", .field = &ModelConfig::rope_dims_swa, .max = 65536},
    {.key = "embedding_length_per_layer_input", .field = &ModelConfig::layer_input_dim, .required = true, .max = 65536},
    {.key = "final_logit_softcapping", .field = &ModelConfig::final_softcap, .max = 1e6},
    {.key = "expert_count", .field = &ModelConfig::n_experts, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .max = kMaxExperts},
    {.key = "expert_feed_forward_length", .field = &ModelConfig::expert_ff_dim, .max = 1 << 24},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kOwnKv},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kOwnKvOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead, Dim::kModel, Need::kOwnKv},
    {"post_attention_norm.weight", &LayerWeights::post_attn_norm, Dim::kModel},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"post_ffw_norm.weight", &LayerWeights::post_ffn_norm, Dim::kModel},
    // What stands beside the experts is their shared one, with norms of its own.
    {"ffn_gate.weight", &LayerWeights::shared_gate, Dim::kFf, Dim::kModel, Need::kExperts},
    {"ffn_up.weight", &LayerWeights::shared_up, Dim::kFf, Dim::kModel, Need::kExperts},
    {"ffn_down.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kFf, Need::kExperts},
    {"post_ffw_norm_1.weight", &LayerWeights::post_shared_norm, Dim::kModel, Dim::kModel, Need::kExperts},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_inp.scale", &LayerWeights::router_norm, Dim::kModel, Dim::kModel, Need::kExperts},
    {"pre_ffw_norm_2.weight", &LayerWeights::expert_norm, Dim::kModel, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExpertsUnlessFused},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExpertsUnlessFused},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_down_exps.scale", &LayerWeights::expert_scale, Dim::kExperts, Dim::kModel, Need::kOptional},
    {"post_ffw_norm_2.weight", &LayerWeights::post_expert_norm, Dim::kModel, Dim::kModel, Need::kExperts},
    {"inp_gate.weight", &LayerWeights::input_gate, Dim::kLayerInput, Dim::kModel, Need::kLayerInputs},
    {"proj.weight", &LayerWeights::input_proj, Dim::kModel, Dim::kLayerInput, Need::kLayerInputs},
    {"post_norm.weight", &LayerWeights::input_norm, Dim::kModel, Dim::kModel, Need::kLayerInputs},
    {"layer_output_scale.weight", &LayerWeights::layer_scale, Dim::kOne, Dim::kModel, Need::kOptional},
};

constexpr GlobalTensorSpec kGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"per_layer_token_embd.weight", &Weights::layer_inputs, Dim::kVocab, Dim::kLayerInputs, Need::kLayerInputs},
    {"per_layer_model_proj.weight", &Weights::layer_input_proj, Dim::kLayerInputs, Dim::kModel, Need::kLayerInputs},
    {"per_layer_proj_norm.weight", &Weights::layer_input_norm, Dim::kLayerInput, Dim::kModel, Need::kLayerInputs},
    // Of layers that see everything; pairs that do not turn have enormous ones.
    {"rope_freqs.weight", &Weights::rope_factors, Dim::kRopePairs},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab, Dim::kModel, Need::kOptional},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.rope_swa_plain = true;
  config.rope_base_swa = 10000;
  config.pattern_required = true;
  config.attn_scale = 1;
  config.final_softcap = 30;
  config.renormalize = true;
}

Status finish(ModelConfig& config) {
  config.embedding_scale = __builtin_sqrtf(static_cast<float>(config.dim));
  if (config.n_experts > 0 && config.expert_ff_dim == 0) {
    return Error{ErrorCode::kCorrupt, "required key expert_feed_forward_length is missing, expert_count needs it"};
  }
  return check_shared_kv(config);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true, .value_norm = true, .post_norm = true});
  if (w.router) {
    plan.moe_beside_dense(w, layer, {.activation = Activation::kGelu});
  } else {
    plan.gated_mlp(w, layer, {.activation = Activation::kGelu, .post_norm = true});
  }
  plan.end_layer(w, layer);
}

}  // namespace

extern const Arch kGemma4;
const Arch kGemma4{.name = "gemma4",
                   .keys = kKeys,
                   .tensors = kTensors,
                   .globals = kGlobals,
                   .defaults = defaults,
                   .finish = finish,
                   .build_layer = build_layer};

}  // namespace stoker::model::gemma4
