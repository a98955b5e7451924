// Gemma 3n (text): four residual streams, of which each layer computes one and predicts the others; beside attention a
// low-rank branch; in the first layers an activation that lets only the largest gates through. Norms of q, k and v, the
// last layers attend to keys and values of an earlier one, and each adds an input of its own, looked up by token.
// Source: Gemma 3n as its authors published it (2025).
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::gemma3n {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "altup.num_inputs", .field = &ModelConfig::n_altup, .required = true, .min = 2, .max = kMaxAltup},
    {.key = "altup.active_idx", .field = &ModelConfig::altup_active, .max = 0},  // the first is computed
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 30},
    {.key = "attention.shared_kv_layers", .field = &ModelConfig::n_shared_kv, .max = 512},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
    {.key = "embedding_length_per_layer_input",
     .field = &ModelConfig::layer_input_dim,
     .required = true,
     .min = 1,
     .max = 65536},
    {.key = "final_logit_softcapping", .field = &ModelConfig::final_softcap, .max = 1e6},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kOwnKv},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kOwnKv},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead, Dim::kModel, Need::kOwnKv},
    {"post_attention_norm.weight", &LayerWeights::post_attn_norm, Dim::kModel},
    {"laurel_l.weight", &LayerWeights::laurel_down, Dim::kLaurel},
    {"laurel_r.weight", &LayerWeights::laurel_up, Dim::kModel, Dim::kLaurel},
    {"laurel_post_norm.weight", &LayerWeights::laurel_norm, Dim::kModel},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"post_ffw_norm.weight", &LayerWeights::post_ffn_norm, Dim::kModel},
    {"altup_router.weight", &LayerWeights::altup_router, Dim::kAltup},
    {"altup_router_norm.weight", &LayerWeights::altup_router_norm, Dim::kModel},
    {"altup_predict_coef.weight", &LayerWeights::altup_predict, Dim::kAltupPairs, Dim::kAltup},
    {"altup_correct_coef.weight", &LayerWeights::altup_correct, Dim::kAltup, Dim::kAltup},
    {"altup_correct_scale.weight", &LayerWeights::altup_scale, Dim::kModel},
    {"inp_gate.weight", &LayerWeights::input_gate, Dim::kLayerInput},
    {"proj.weight", &LayerWeights::input_proj, Dim::kModel, Dim::kLayerInput},
    {"post_norm.weight", &LayerWeights::input_norm, Dim::kModel},
};

constexpr GlobalTensorSpec kGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"per_layer_token_embd.weight", &Weights::layer_inputs, Dim::kVocab, Dim::kLayerInputs},
    {"per_layer_model_proj.weight", &Weights::layer_input_proj, Dim::kLayerInputs},
    {"per_layer_proj_norm.weight", &Weights::layer_input_norm, Dim::kLayerInput},
    {"altup_proj.weight", &Weights::altup_proj, Dim::kModel, Dim::kModel, Need::kRequired, Dim::kAltupOthers},
    {"altup_unembd_proj.weight", &Weights::altup_back, Dim::kModel, Dim::kModel, Need::kRequired, Dim::kAltupOthers},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab, Dim::kModel, Need::kOptional},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.rope_base_swa = 10000;
  config.sliding_period = 5;
  config.attn_scale = 1;
  config.final_softcap = 30;
  config.has_sparsity = true;
}

Status finish(ModelConfig& config) {
  config.embedding_scale = __builtin_sqrtf(static_cast<float>(config.dim));
  if (config.dim % 16 != 0) {
    return Error{ErrorCode::kUnsupported, str_cat("key gemma3n.embedding_length is ", config.dim,
                                                  "; this version runs gemma3n with multiples of 16")};
  }
  return check_shared_kv(config);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.predict(w, layer);
  plan.attention(w, layer, {.qk_norm = true, .value_norm = true, .post_norm = true});
  plan.add_by_root_half();
  plan.gated_mlp(w, layer, {.activation = Activation::kGelu, .post_norm = true});
  plan.correct(w, layer);
}

}  // namespace

extern const Arch kGemma3n;
const Arch kGemma3n{.name = "gemma3n",
                    .keys = kKeys,
                    .tensors = kTensors,
                    .globals = kGlobals,
                    .defaults = defaults,
                    .finish = finish,
                    .build_layer = build_layer};

}  // namespace stoker::model::gemma3n
