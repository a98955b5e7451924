// What all families of latent attention have in common.
#pragma once

#include <array>

#include "model/arch/arch.h"

namespace stoker::model {

inline constexpr double kMaxLatent = 1 << 20;

inline constexpr KeySpec kLatentKeys[] = {
    {.key = "attention.kv_lora_rank", .field = &ModelConfig::latent_dim, .required = true, .min = 1, .max = 1024},
    {.key = "attention.q_lora_rank", .field = &ModelConfig::q_latent_dim, .max = kMaxLatent},
    {.key = "attention.key_length_mla", .field = &ModelConfig::head_k_dim, .max = 65536},
    {.key = "attention.value_length_mla", .field = &ModelConfig::head_v_dim, .max = 65536},
    {.key = "attention.temperature_scale", .field = &ModelConfig::attn_temperature, .max = 1e3},
    {.key = "attention.temperature_length", .field = &ModelConfig::attn_temperature_length, .max = 1 << 30},
    {.key = "rope.scaling.yarn_log_multiplier", .field = &ModelConfig::yarn_log_multiplier, .max = 1e3},
    {.key = "rope.scaling.yarn_beta_fast", .field = &ModelConfig::yarn_beta_fast, .min = 1e-3, .max = 1e6},
    {.key = "rope.scaling.yarn_beta_slow", .field = &ModelConfig::yarn_beta_slow, .min = 1e-3, .max = 1e6},
    {.key = "expert_count", .field = &ModelConfig::n_experts, .max = kMaxExperts},
    {.key = "expert_used_count", .field = &ModelConfig::n_used_experts, .max = kMaxExperts},
    {.key = "expert_feed_forward_length", .field = &ModelConfig::expert_ff_dim, .max = 1 << 24},
    {.key = "expert_shared_count", .field = &ModelConfig::n_shared, .max = kMaxExperts},
    {.key = "expert_group_count", .field = &ModelConfig::n_groups, .max = kMaxExperts},
    {.key = "expert_group_used_count", .field = &ModelConfig::n_used_groups, .max = kMaxExperts},
    {.key = "expert_gating_func", .field = &ModelConfig::gating, .max = 4},
    kLeadingDense,
    kWeightsNorm,
    kWeightsScale,
};

inline constexpr TensorSpec kLatentTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kHeadsQ, Dim::kModel, Need::kQPlain},
    {"attn_q_a.weight", &LayerWeights::q_down, Dim::kQLatent, Dim::kModel, Need::kQLatent},
    {"attn_q_a_norm.weight", &LayerWeights::q_latent_norm, Dim::kQLatent, Dim::kModel, Need::kQLatent},
    {"attn_q_b.weight", &LayerWeights::wq, Dim::kHeadsQ, Dim::kQLatent, Need::kQLatent},
    {"attn_kv_a_mqa.weight", &LayerWeights::kv_down, Dim::kLatentAndRope},
    {"attn_kv_a_norm.weight", &LayerWeights::latent_norm, Dim::kLatent},
    {"attn_k_b.weight", &LayerWeights::k_up, Dim::kLatent, Dim::kHeadPlain, Need::kUnlessJoined, Dim::kHeads},
    {"attn_v_b.weight", &LayerWeights::v_up, Dim::kHeadValue, Dim::kLatent, Need::kUnlessJoined, Dim::kHeads},
    {"attn_kv_b.weight", &LayerWeights::kv_up, Dim::kHeadsKV, Dim::kLatent, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kHeadsValue},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kOptional},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExpertsUnlessFused},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExpertsUnlessFused},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
    // Of an indexer.
    {"indexer.attn_q_b.weight", &LayerWeights::index_q, Dim::kIndexQ, Dim::kQLatent, Need::kIndexer},
    {"indexer.attn_k.weight", &LayerWeights::index_k, Dim::kIndexKey, Dim::kModel, Need::kIndexer},
    {"indexer.k_norm.weight", &LayerWeights::index_k_norm, Dim::kIndexKey, Dim::kModel, Need::kIndexer},
    {"indexer.k_norm.bias", &LayerWeights::b_index_k_norm, Dim::kIndexKey, Dim::kModel, Need::kIndexer},
    {"indexer.proj.weight", &LayerWeights::index_weights, Dim::kIndexHeads, Dim::kModel, Need::kIndexer},
};

/// How YaRN enters the scale of scores.
enum class LatentScale {
  kOwn,   ///< DeepSeek's follows mscale_all_dim, of which yarn_log_multiplier is a tenth,
  kYarn,  ///< Mistral's and that of DeepSeek V3.2 YaRN itself.
};
Status finish_latent(ModelConfig& config, LatentScale scale);
/// The part of it that is not about scales: the dimensions of a head, where old files have them, and the one cached
/// head that stands for all. kUnsupported, kCorrupt: sizes that are not run or cannot be.
Status finish_latent_heads(ModelConfig& config);
/// Of families whose layers have Kimi Delta Attention where they have no key-value heads, and latents elsewhere.
Status finish_kimi(ModelConfig& config);
void latent_defaults(ModelConfig& config);
void build_latent_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer);

}  // namespace stoker::model
