#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "gguf/file.h"
#include "model/config.h"
#include "model/weights.h"

namespace stoker::model {

class PlanBuilder;

/// One metadata key of a family: where it goes and what values are possible. Keys stand below "{architecture}.".
struct KeySpec {
  std::string_view key;
  std::variant<int64_t ModelConfig::*, float ModelConfig::*, PerLayer ModelConfig::*, bool ModelConfig::*> field;
  bool required = false;
  double min = 0;  ///< And max: not of a bool.
  double max = 1e9;
};

/// Keys of several families with experts.
inline constexpr KeySpec kExpertCount{
    .key = "expert_count", .field = &ModelConfig::n_experts, .required = true, .min = 2, .max = kMaxExperts};
inline constexpr KeySpec kExpertUsedCount{
    .key = "expert_used_count", .field = &ModelConfig::n_used_experts, .required = true, .max = kMaxExperts};
inline constexpr KeySpec kExpertWidth{.key = "expert_feed_forward_length",
                                      .field = &ModelConfig::expert_ff_dim,
                                      .required = true,
                                      .min = 1,
                                      .max = 1 << 24};
inline constexpr KeySpec kSharedCount{
    .key = "expert_shared_count", .field = &ModelConfig::n_shared, .required = true, .max = kMaxExperts};
inline constexpr KeySpec kSharedWidth{
    .key = "expert_shared_feed_forward_length", .field = &ModelConfig::shared_ff_dim, .max = 1 << 24};
inline constexpr KeySpec kLeadingDense{
    .key = "leading_dense_block_count", .field = &ModelConfig::n_dense_layers, .max = 512};
inline constexpr KeySpec kGatingFunc{.key = "expert_gating_func", .field = &ModelConfig::gating, .min = 1, .max = 4};
inline constexpr KeySpec kWeightsNorm{.key = "expert_weights_norm", .field = &ModelConfig::renormalize};
inline constexpr KeySpec kWeightsScale{.key = "expert_weights_scale", .field = &ModelConfig::expert_scale, .max = 1e6};

/// Keys of families with states of a fixed size.
inline constexpr KeySpec kConvTaps{
    .key = "ssm.conv_kernel", .field = &ModelConfig::conv_taps, .required = true, .min = 1, .max = 64};
inline constexpr KeySpec kStateSize{
    .key = "ssm.state_size", .field = &ModelConfig::state_k_dim, .required = true, .min = 1, .max = 65536};
inline constexpr KeySpec kStateGroups{
    .key = "ssm.group_count", .field = &ModelConfig::n_key_heads, .required = true, .min = 1, .max = 65536};
inline constexpr KeySpec kStateHeadCount{
    .key = "ssm.time_step_rank", .field = &ModelConfig::n_state_heads, .required = true, .min = 1, .max = 65536};
inline constexpr KeySpec kStateInnerSize{
    .key = "ssm.inner_size", .field = &ModelConfig::state_inner_dim, .required = true, .min = 1, .max = 1 << 24};
/// A list: 0 where a layer has no attention (recurrent_where_no_heads).
inline constexpr KeySpec kHeadsOrNone{
    .key = "attention.head_count_kv", .field = &ModelConfig::n_kv_heads, .required = true, .max = 65536};

/// Sizes that tensor shapes are made of.
enum class Dim {
  kModel,
  kVocab,
  kQ,
  kK,
  kV,
  kQkv,
  kAttnOut,
  kFf,
  kTwoFf,  ///< Gate and up in one.
  kHalfFf,
  kHead,
  kHeads,
  kKvHeads,
  kContext,
  kRopePairs,
  kMostRopePairs,  ///< Of layers that slide or of the others, whichever are more.
  kGates,          ///< Of attention: one for each head, or for each of its values.
  kExperts,
  kExpertFf,
  kSharedFf,
  kExpertModel,    ///< What routed experts read and give.
  kLatent,         ///< The latent row that keys and values come out of.
  kLatentAndRope,  ///< The same and the part of keys that is rotated.
  kQLatent,
  kHeadPlain,      ///< Of a head's query the dimensions that are not rotated.
  kHeadValue,      ///< Of a head's output.
  kHeadsQ,         ///< Queries of all heads; of families with latents, as those that follow.
  kHeadsKV,        ///< Of all heads, one after the other: keys without their rotated part, then values.
  kHeadsValue,     ///< Outputs of all heads.
  kIndexQ,         ///< Of an indexer: queries of its heads,
  kIndexKey,       ///< a key,
  kAltup,          ///< Residual streams that predict each other,
  kAltupOthers,    ///< those of them that are not computed,
  kAltupPairs,     ///< and pairs of them.
  kLaurel,         ///< Of a low-rank branch beside attention.
  kLayerInput,     ///< Of a layer's own input.
  kLayerInputs,    ///< Of those of all layers.
  kIndexHeads,     ///< a number for each head.
  kHeadsQAndGate,  ///< Queries of all heads, each followed by its gate.
  kThreeModel,
  kKeyHeads,
  kGroupInner,  ///< Of the values of all heads those of one key head's. As columns of a vector: there are as many rows.
  kScanIn,      ///< Gates, values, k, q and steps of all heads.
  kTaps,        ///< Of a convolution. As columns of a vector: it is transposed when it is read.
  kConvChannels,
  kStateHeads,
  kTwoStateHeads,
  kStateValue,  ///< Of one head.
  kStateInner,  ///< Of all heads.
  kStateIn,     ///< q, k, v and gates of all heads.
  kStreams,
  kStreamsModel,  ///< Of all residual streams.
  kMixes,         ///< Numbers that mix them, and
  kMixScales,     ///< factors of these.
  kRatio,         ///< Positions of a compressed row; this and the next two of a layer that has such.
  kCompressed,    ///< Values that it is made of, for each of them.
  kIndexCompressed,
  kOutGroups,
  kOutLatent,   ///< Of a group of heads.
  kOutLatents,  ///< Of all groups.
  kGroupOut,    ///< Outputs of the heads of a group.
  kUsedExperts,
  kOne,
  kTokenTypes,
  kLabels,  ///< Of a head that ranks.
  kDense2,
  kDense3,
};

enum class Need {
  kRequired,
  kOptional,
  kF32,                 ///< Required, and a vector whose file must hold the values as they are.
  kUnlessFused,         ///< Required unless attn_qkv is there.
  kDense,               ///< Required in a layer without experts, and unknown in others.
  kExperts,             ///< Required in a layer with experts.
  kShared,              ///< The same, if the model has shared experts.
  kHeadGains,           ///< Required if ModelConfig::head_gains, unknown otherwise.
  kQLatent,             ///< Required where queries come out of a latent row.
  kQPlain,              ///< Required where they do not.
  kUnlessJoined,        ///< Required unless attn_kv_b is there.
  kOwnKv,               ///< Required in a layer that attends to keys of its own; of others not read.
  kOwnKvOptional,       ///< The same, but for being required.
  kLayerInputs,         ///< Required where layers have inputs of their own.
  kExpertsUnlessFused,  ///< As kExperts, unless ffn_gate_up_exps is there: of each expert the rows of gate, then of up.
  kRoutedLatent,        ///< Required where routed experts have a dimension of their own.
  kRoutedLatentOptional,  ///< The same, but for being required.
  kScored,                ///< Required where blocks read several residuals.
  kIndexer,               ///< Required in a layer that has an indexer, unknown in others.
  kCompressed,            ///< Required in a layer with compressed rows, unknown in others.
  kHashed,                ///< Required in a layer whose experts are looked up by token: the numbers of experts, I32.
  kUnhashed,              ///< Required in a layer whose experts are not, unknown in the former.
  kAfterFirst,            ///< Required but in the first layer, which may not have it.
  kUnlessGate,            ///< Required unless ffn_gate is there: it holds the rows of gate, then those of up.
  kWithGate,              ///< Required if ffn_gate is there, and unknown otherwise.
  kUnlessStateIn,         ///< Required unless ssm_in is there.
  kLinear,                ///< Required in a layer that has a matrix in place of attention, unknown in others.
  kFeedForward,           ///< Required in a layer whose feed-forward block has a width, unknown in others.
};

/// In which layers a family has a tensor.
enum class Layers { kAll, kAttention, kRecurrent, kStateless };

/// One tensor: its name (within "blk.N." for those of a layer), where it goes, its shape. A matrix is [rows, cols], a
/// vector [rows]; those of experts are stacked: [experts, rows, cols] and [experts, rows].
struct TensorSpec {
  std::string_view name;
  std::variant<Matrix LayerWeights::*, Vector LayerWeights::*, ExpertMatrix LayerWeights::*,
               ExpertVector LayerWeights::*>
      slot;
  Dim rows;
  Dim cols = Dim::kModel;  ///< Of matrices only; of a vector those of is_of_vectors.
  Need need = Need::kRequired;
  Dim stack = Dim::kOne;  ///< So many matrices, [stack, rows, cols], that are used as one of stack * rows rows.
  Layers layers = Layers::kAll;
  bool unit = false;  ///< Converters write a dimension of 1 behind the rows, which says nothing; synth does as they.
};
constexpr TensorSpec with_unit(TensorSpec spec) {
  spec.unit = true;
  return spec;
}
constexpr TensorSpec of_attention(TensorSpec spec) {
  spec.layers = Layers::kAttention;
  return spec;
}
constexpr TensorSpec of_stateless(TensorSpec spec) {
  spec.layers = Layers::kStateless;
  return spec;
}
constexpr TensorSpec of_recurrent(TensorSpec spec) {
  spec.layers = Layers::kRecurrent;
  return spec;
}
struct GlobalTensorSpec {
  std::string_view name;
  std::variant<Matrix Weights::*, Vector Weights::*> slot;
  Dim rows;
  Dim cols = Dim::kModel;
  Need need = Need::kRequired;
  Dim stack = Dim::kOne;  ///< TensorSpec::stack
};

/// An architecture as data. Loading, validation, `inspect` and the memory estimate all read these tables.
struct Arch {
  std::string_view name;          ///< general.architecture
  std::span<const KeySpec> keys;  ///< Beyond the common ones.
  std::span<const TensorSpec> tensors;
  std::span<const GlobalTensorSpec> globals;
  /// Family defaults, set before the keys are read.
  void (*defaults)(ModelConfig&);
  /// Family rules once all keys are read; may refuse. May be null.
  Status (*finish)(ModelConfig&);
  /// Composes one layer of shared blocks.
  void (*build_layer)(PlanBuilder&, const LayerWeights&, int64_t layer);
};

/// kUnsupported: lists the known ones.
Result<const Arch*> find_arch(std::string_view name);
std::span<const Arch* const> all_archs();

/// Tables that several families share.
/// attn_norm, q, k, v, o with optional biases, ffn_norm, gated FFN or experts; and exp_probs_b where the file has it.
extern const std::span<const TensorSpec> kGqaTensors, kGqaTensorsAndSelectionBias;
/// Of norms with biases: a feed-forward block without a gate, biases where the file has them; kBiasedNormGatedTensors
/// with a gate; kOneBiasedNormTensors without a gate and without a norm before it.
extern const std::span<const TensorSpec> kBiasedNormTensors, kBiasedNormGatedTensors, kOneBiasedNormTensors;
/// With norms on q and k heads, without biases; FFN or experts, shared ones, exp_probs_b where the file has it.
/// kGatedQkMoeTensors: the same with gates of attention.
extern const std::span<const TensorSpec> kNormedQkMoeTensors, kGatedQkMoeTensors;
/// Of families whose files say how experts are chosen and weighed, and which layers have them.
extern const std::span<const KeySpec> kRoutingKeys;
extern const std::span<const GlobalTensorSpec> kTiedGlobals;    ///< token_embd, output_norm, optional output.
extern const std::span<const GlobalTensorSpec> kUntiedGlobals;  ///< The same with output required.
/// kTiedGlobals with the head of a model that ranks.
extern const std::span<const GlobalTensorSpec> kRankingGlobals;
/// kTiedGlobals with output_norm.bias.
extern const std::span<const GlobalTensorSpec> kBiasedNormGlobals;

/// The tensor in whose place those of this kind stand; empty: they do not stand for another.
constexpr std::string_view fused_form(Need need) {
  return need == Need::kUnlessFused          ? "attn_qkv.weight"
         : need == Need::kUnlessJoined       ? "attn_kv_b.weight"
         : need == Need::kUnlessStateIn      ? "ssm_in.weight"
         : need == Need::kUnlessGate         ? "ffn_gate.weight"
         : need == Need::kExpertsUnlessFused ? "ffn_gate_up_exps.weight"
                                             : "";
}

constexpr bool is_optional(Need need) {
  return need == Need::kOptional || need == Need::kOwnKvOptional || need == Need::kRoutedLatentOptional;
}
constexpr bool is_of_routed_latent(Need need) {
  return need == Need::kRoutedLatent || need == Need::kRoutedLatentOptional;
}
constexpr bool is_of_own_kv(Need need) { return need == Need::kOwnKv || need == Need::kOwnKvOptional; }

/// Whether `layer` may have a tensor of this kind, the fused ones aside.
inline bool may_have(Need need, const ModelConfig& config, int64_t layer) {
  if (need == Need::kHeadGains) return config.head_gains;
  if (need == Need::kAfterFirst) return layer > 0;
  if (need == Need::kLinear) return !config.linear_layers.values.empty() && config.linear_layers[layer] != 0;
  if (need == Need::kFeedForward) return config.ff_dim[layer] > 0;
  if (is_of_own_kv(need)) return config.kv_layer(layer) == layer;
  if (need == Need::kScored) return config.kept_interval > 0;
  if (is_of_routed_latent(need)) return config.has_experts(layer) && config.expert_latent_dim > 0;
  if (need == Need::kLayerInputs) return config.layer_input_dim > 0;
  if (need == Need::kExpertsUnlessFused) return config.has_experts(layer);
  if (need == Need::kIndexer) return config.has_indexer(layer);
  if (need == Need::kCompressed) return config.ratio_of(layer) > 0;
  if (need == Need::kHashed) return layer < config.n_hash_layers;
  if (need == Need::kUnhashed) return layer >= config.n_hash_layers;
  if (need == Need::kQLatent) return config.q_latent_dim > 0;
  if (need == Need::kQPlain) return config.q_latent_dim == 0;
  if (need == Need::kShared) return config.has_experts(layer) && config.shared_width() > 0;
  return need != (config.has_experts(layer) ? Need::kDense : Need::kExperts);
}
inline bool may_have(const TensorSpec& spec, const ModelConfig& config, int64_t layer) {
  const Layers kind = config.is_stateless(layer)   ? Layers::kStateless
                      : config.is_recurrent(layer) ? Layers::kRecurrent
                                                   : Layers::kAttention;
  if (spec.layers != Layers::kAll && spec.layers != kind) return false;
  return may_have(spec.need, config, layer);
}

/// Columns of the vectors that have any.
constexpr bool is_of_vectors(Dim cols) {
  return cols == Dim::kHead || cols == Dim::kTaps || cols == Dim::kGroupInner || cols == Dim::kCompressed ||
         cols == Dim::kIndexCompressed || cols == Dim::kUsedExperts || cols == Dim::kAltup;
}
/// Whether the shape of a tensor has columns.
inline bool has_cols(const TensorSpec& spec) {
  return std::holds_alternative<Matrix LayerWeights::*>(spec.slot) ||
         std::holds_alternative<ExpertMatrix LayerWeights::*>(spec.slot) || is_of_vectors(spec.cols);
}

/// For `finish` of families with recurrent layers: sizes that the kernels run, and attention in one layer at least.
/// kUnsupported, kCorrupt: name the key.
Status check_recurrence(const ModelConfig& config);
/// For `finish` of families whose last layers attend to keys of an earlier one. kCorrupt: there is none.
Status check_shared_kv(const ModelConfig& config);
/// For `finish` of families with Mamba-2: the size of its heads. kCorrupt: names the key.
Status finish_scan(ModelConfig& config);
/// Layers without key-value heads are recurrent. kUnsupported: all are, or the convolution has so many taps.
Status recurrent_where_no_heads(ModelConfig& config, std::string_view taps_key = "ssm.conv_kernel");

/// The size that `dim` stands for, in `layer` where that matters.
int64_t resolve(Dim dim, const ModelConfig& config, int64_t layer);

}  // namespace stoker::model
