// Gemma 1 without what the others have beyond its GeGLU and scaled embeddings; Gemma 2 and 3 (text): norms before and
// after each block, GeGLU, embeddings times sqrt(dim), layers with a sliding window between layers that see everything.
// Gemma 2 caps scores and logits; Gemma 3 norms each q and k head instead and rotates sliding layers with a base of
// their own. Norm gains in the files include the 1 of the original's (1 + w). Sources: Gemma 2 (arXiv:2408.00118),
// Gemma 3 (arXiv:2503.19786).
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::gemma {
namespace {

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"post_attention_norm.weight", &LayerWeights::post_attn_norm, Dim::kModel},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"post_ffw_norm.weight", &LayerWeights::post_ffn_norm, Dim::kModel},
    // Gemma 3 only; last, so that Gemma 2 takes the table without them.
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead},
};
constexpr std::span<const TensorSpec> kGemma3Tensors = kTensors;
constexpr std::span<const TensorSpec> kGemma2Tensors = kGemma3Tensors.first(kGemma3Tensors.size() - 2);

constexpr TensorSpec kGemmaTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

constexpr KeySpec kGemma2Keys[] = {
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .min = 0, .max = 1 << 30},
    {.key = "attn_logit_softcapping", .field = &ModelConfig::attn_softcap, .min = 0, .max = 1e6},
    {.key = "final_logit_softcapping", .field = &ModelConfig::final_softcap, .min = 0, .max = 1e6},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};
constexpr KeySpec kGemma3Keys[] = {
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .min = 0, .max = 1 << 30},
    {.key = "final_logit_softcapping", .field = &ModelConfig::final_softcap, .min = 0, .max = 1e6},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};

// EmbeddingGemma: queries see both sides, and what is pooled may go through two matrices.
constexpr KeySpec kGemmaEmbeddingKeys[] = {
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .min = 0, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
    {.key = "dense_2_feat_out", .field = &ModelConfig::dense_2_dim, .min = 0, .max = 1 << 24},
    {.key = "dense_3_feat_in", .field = &ModelConfig::dense_3_dim, .min = 0, .max = 1 << 24},
};
constexpr GlobalTensorSpec kGemmaEmbeddingGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"dense_2.weight", &Weights::dense_2, Dim::kDense2, Dim::kModel, Need::kOptional},
    {"dense_3.weight", &Weights::dense_3, Dim::kModel, Dim::kDense3, Need::kOptional},
};

void gemma_defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kHalves; }
void gemma2_defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.window = 4096;
  config.sliding_period = 2;
  config.attn_softcap = 50;
  config.final_softcap = 30;
}

void gemma3_defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.sliding_period = 6;
  config.rope_base_swa = 10000;
  config.rope_swa_plain = true;
}

void gemma_embedding_defaults(ModelConfig& config) {
  gemma3_defaults(config);
  config.causal = false;
}

/// The 27B models scale scores by the model dimension per head instead of the head dimension; no key says so, their
/// number of layers does.
Status finish_with(ModelConfig& config, int64_t layers_of_27b) {
  config.embedding_scale = __builtin_sqrtf(static_cast<float>(config.dim));
  if (config.n_layers == layers_of_27b) {
    config.attn_scale = 1.0f / __builtin_sqrtf(static_cast<float>(config.dim / config.n_heads[0]));
  }
  return Ok{};
}
Status gemma_finish(ModelConfig& config) { return finish_with(config, 0); }
Status gemma2_finish(ModelConfig& config) { return finish_with(config, 46); }
Status gemma3_finish(ModelConfig& config) { return finish_with(config, 62); }

Status gemma_embedding_finish(ModelConfig& config) {
  if (config.dense_2_dim != config.dense_3_dim) {
    return Error{ErrorCode::kCorrupt, str_cat("keys dense_2_feat_out and dense_3_feat_in are ", config.dense_2_dim,
                                              " and ", config.dense_3_dim, ", wanted the same")};
  }
  return finish_with(config, 0);
}

void gemma_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {.activation = Activation::kGelu});
}
void gemma2_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.post_norm = true});
  plan.gated_mlp(w, layer, {.activation = Activation::kGelu, .post_norm = true});
}
void gemma3_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true, .post_norm = true});
  plan.gated_mlp(w, layer, {.activation = Activation::kGelu, .post_norm = true});
}

}  // namespace

extern const Arch kGemma, kGemma2, kGemma3, kGemmaEmbedding;
const Arch kGemma{.name = "gemma",
                  .keys = {},
                  .tensors = kGemmaTensors,
                  .globals = kTiedGlobals,
                  .defaults = gemma_defaults,
                  .finish = gemma_finish,
                  .build_layer = gemma_layer};
const Arch kGemma2{.name = "gemma2",
                   .keys = kGemma2Keys,
                   .tensors = kGemma2Tensors,
                   .globals = kTiedGlobals,
                   .defaults = gemma2_defaults,
                   .finish = gemma2_finish,
                   .build_layer = gemma2_layer};
const Arch kGemma3{.name = "gemma3",
                   .keys = kGemma3Keys,
                   .tensors = kGemma3Tensors,
                   .globals = kTiedGlobals,
                   .defaults = gemma3_defaults,
                   .finish = gemma3_finish,
                   .build_layer = gemma3_layer};
const Arch kGemmaEmbedding{.name = "gemma-embedding",
                           .keys = kGemmaEmbeddingKeys,
                           .tensors = kGemma3Tensors,
                           .globals = kGemmaEmbeddingGlobals,
                           .defaults = gemma_embedding_defaults,
                           .finish = gemma_embedding_finish,
                           .build_layer = gemma3_layer};

}  // namespace stoker::model::gemma
