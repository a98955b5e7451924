// DeepSeek V4: four residual streams that every block mixes (manifold-constrained hyper-connections); attention over a
// window and over rows that stand for 4 positions, of which an indexer chooses some, or for 128, all seen; keys are
// values too, and what comes out is rotated back. The first layers look their experts up by token.
// Source: DeepSeek-V4 technical report (2026); names of keys and tensors as llama.cpp has them.
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::deepseek4 {
namespace {

constexpr double kMaxDim = 65536;
constexpr double kMostSeen = 1 << 16;  // as of other families with an indexer

constexpr KeySpec kKeys[] = {
    {.key = "attention.key_length", .field = &ModelConfig::k_dim, .required = true, .min = 1, .max = kMaxDim},
    {.key = "attention.value_length", .field = &ModelConfig::v_dim, .required = true, .min = 1, .max = kMaxDim},
    {.key = "feed_forward_length", .field = &ModelConfig::ff_dim, .min = 1, .max = 1 << 24},
    {.key = "rope.dimension_count", .field = &ModelConfig::rope_dims, .required = true, .min = 2, .max = kMaxDim},
    // Layers without compressed rows are those that "slide": they have a rotation of their own.
    {.key = "rope.freq_base", .field = &ModelConfig::rope_base_swa, .required = true, .min = 1e-3, .max = 1e15},
    {.key = "attention.compress_rope_freq_base",
     .field = &ModelConfig::rope_base,
     .required = true,
     .min = 1e-3,
     .max = 1e15},
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .required = true, .min = 1, .max = 1 << 16},
    {.key = "attention.q_lora_rank", .field = &ModelConfig::q_latent_dim, .required = true, .min = 1, .max = 1 << 20},
    {.key = "attention.output_group_count",
     .field = &ModelConfig::out_groups,
     .required = true,
     .min = 1,
     .max = kMaxDim},
    {.key = "attention.output_lora_rank",
     .field = &ModelConfig::out_latent_dim,
     .required = true,
     .min = 1,
     .max = kMaxDim},
    {.key = "attention.indexer.head_count",
     .field = &ModelConfig::index_heads,
     .required = true,
     .min = 1,
     .max = 1024},
    {.key = "attention.indexer.key_length", .field = &ModelConfig::index_dim, .required = true, .min = 8, .max = 1024},
    {.key = "attention.indexer.top_k",
     .field = &ModelConfig::index_top_k,
     .required = true,
     .min = 1,
     .max = kMostSeen},
    {.key = "hyper_connection.count", .field = &ModelConfig::n_streams, .required = true, .min = 1, .max = 64},
    {.key = "hyper_connection.sinkhorn_iterations",
     .field = &ModelConfig::mix_rounds,
     .required = true,
     .min = 1,
     .max = 1000},
    {.key = "hyper_connection.epsilon", .field = &ModelConfig::mix_eps, .required = true, .min = 1e-12, .max = 1},
    {.key = "hash_layer_count", .field = &ModelConfig::n_hash_layers, .required = true, .max = 512},
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    kSharedCount,
    {.key = "expert_weights_scale", .field = &ModelConfig::expert_scale, .required = true, .min = 1e-6, .max = 1e6},
    {.key = "expert_weights_norm", .field = &ModelConfig::renormalize, .required = true},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"hc_attn_fn.weight", &LayerWeights::attn_mix, Dim::kMixes, Dim::kStreamsModel},
    {"hc_attn_base.weight", &LayerWeights::attn_mix_base, Dim::kMixes},
    {"hc_attn_scale.weight", &LayerWeights::attn_mix_scale, Dim::kMixScales},
    {"attn_q_a.weight", &LayerWeights::q_down, Dim::kQLatent},
    {"attn_q_a_norm.weight", &LayerWeights::q_latent_norm, Dim::kQLatent},
    {"attn_q_b.weight", &LayerWeights::wq, Dim::kQ, Dim::kQLatent},
    {"attn_kv.weight", &LayerWeights::kv_down, Dim::kHead},
    {"attn_kv_a_norm.weight", &LayerWeights::latent_norm, Dim::kHead},
    {"attn_sinks.weight", &LayerWeights::sinks, Dim::kHeads, Dim::kModel, Need::kF32},
    {"attn_output_a.weight", &LayerWeights::out_down, Dim::kOutLatent, Dim::kGroupOut, Need::kRequired,
     Dim::kOutGroups},
    {"attn_output_b.weight", &LayerWeights::wo, Dim::kModel, Dim::kOutLatents},
    {"attn_compressor_kv.weight", &LayerWeights::compress_kv, Dim::kCompressed, Dim::kModel, Need::kCompressed},
    {"attn_compressor_gate.weight", &LayerWeights::compress_gate, Dim::kCompressed, Dim::kModel, Need::kCompressed},
    {"attn_compressor_ape.weight", &LayerWeights::compress_ape, Dim::kRatio, Dim::kCompressed, Need::kCompressed},
    {"attn_compressor_norm.weight", &LayerWeights::compress_norm, Dim::kHead, Dim::kModel, Need::kCompressed},
    {"indexer.attn_q_b.weight", &LayerWeights::index_q, Dim::kIndexQ, Dim::kQLatent, Need::kIndexer},
    {"indexer.proj.weight", &LayerWeights::index_weights, Dim::kIndexHeads, Dim::kModel, Need::kIndexer},
    {"indexer_compressor_kv.weight", &LayerWeights::index_compress_kv, Dim::kIndexCompressed, Dim::kModel,
     Need::kIndexer},
    {"indexer_compressor_gate.weight", &LayerWeights::index_compress_gate, Dim::kIndexCompressed, Dim::kModel,
     Need::kIndexer},
    {"indexer_compressor_ape.weight", &LayerWeights::index_compress_ape, Dim::kRatio, Dim::kIndexCompressed,
     Need::kIndexer},
    {"indexer_compressor_norm.weight", &LayerWeights::index_compress_norm, Dim::kIndexKey, Dim::kModel, Need::kIndexer},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"hc_ffn_fn.weight", &LayerWeights::ffn_mix, Dim::kMixes, Dim::kStreamsModel},
    {"hc_ffn_base.weight", &LayerWeights::ffn_mix_base, Dim::kMixes},
    {"hc_ffn_scale.weight", &LayerWeights::ffn_mix_scale, Dim::kMixScales},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts},
    {"ffn_gate_tid2eid.weight", &LayerWeights::expert_of_token, Dim::kVocab, Dim::kUsedExperts, Need::kHashed},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kUnhashed},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
};

constexpr GlobalTensorSpec kGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab},
    {"output_hc_fn.weight", &Weights::head_mix, Dim::kStreams, Dim::kStreamsModel},
    {"output_hc_base.weight", &Weights::head_mix_base, Dim::kStreams},
    {"output_hc_scale.weight", &Weights::head_mix_scale, Dim::kOne},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.rope_swa_plain = true;
  config.gating = static_cast<int64_t>(Gating::kSqrtSoftplus);
  config.n_kv_heads = {{1}};
  config.ff_dim = {{0}};
  config.compresses = true;
  config.drafts_by_tensor = true;
}

Status check_sizes(const ModelConfig& config) {
  const auto unsupported = [&](const char* key, int64_t value, const auto&... wanted) -> Status {
    return Error{ErrorCode::kUnsupported,
                 str_cat("key ", config.arch->name, ".", key, " is ", value, "; this version runs ", wanted...)};
  };
  if (config.n_streams != 4) return unsupported("hyper_connection.count", config.n_streams, 4);
  if (config.n_kv_heads.max() != 1) return unsupported("attention.head_count_kv", config.n_kv_heads.max(), 1);
  if (config.k_dim % 16 != 0) return unsupported("attention.key_length", config.k_dim, "multiples of 16");
  if (config.v_dim != config.k_dim) {
    return unsupported("attention.value_length", config.v_dim, "that of keys, ", config.k_dim);
  }
  if (config.index_dim < config.rope_dims || config.index_dim % 8 != 0) {
    return unsupported("attention.indexer.key_length", config.index_dim, "multiples of 8 from the ", config.rope_dims,
                       " rotated dimensions on");
  }
  if (config.out_latent_dim % 16 != 0) {
    return unsupported("attention.output_lora_rank", config.out_latent_dim, "multiples of 16");
  }
  if (config.n_heads.values.size() > 1) return unsupported("attention.head_count", 0, "one number for all layers");
  if (config.n_heads[0] % config.out_groups != 0) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("key ", config.arch->name, ".attention.output_group_count is ", config.out_groups,
                         ", wanted equal groups of ", config.n_heads[0], " heads")};
  }
  return Ok{};
}

Status finish(ModelConfig& config) {
  STOKER_TRY_STATUS(check_sizes(config));
  bool any = false;
  for (size_t layer = 0; layer < config.ratios.size(); ++layer) {
    const int64_t ratio = config.ratios[layer];
    if (ratio != 0 && ratio != 4 && ratio != 128) {
      return Error{ErrorCode::kUnsupported, str_cat("key ", config.arch->name, ".attention.compress_ratios says ",
                                                    ratio, " of layer ", layer, "; this version runs 0, 4 and 128")};
    }
    config.sliding[layer] = ratio == 0;
    config.index_layers[layer] = ratio == 4;
    any |= ratio != 0;
  }
  if (!any) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("key ", config.arch->name, ".attention.compress_ratios is 0 in all ", config.n_layers,
                         " layers; this version runs ", config.arch->name, " with compressed rows in some")};
  }
  // YaRN has no magnitude here.
  config.yarn_magnitude = 1;
  config.rope_attn_factor = 1;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.mix_streams(w.attn_mix, w.attn_mix_base, w.attn_mix_scale);
  plan.compressed_attention(w, layer);
  plan.mix_streams(w.ffn_mix, w.ffn_mix_base, w.ffn_mix_scale);
  plan.moe(w, layer, {});
}

}  // namespace

extern const Arch kDeepseek4;
const Arch kDeepseek4{.name = "deepseek4",
                      .keys = kKeys,
                      .tensors = kTensors,
                      .globals = kGlobals,
                      .defaults = defaults,
                      .finish = finish,
                      .build_layer = build_layer};

}  // namespace stoker::model::deepseek4
