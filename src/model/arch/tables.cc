// Tables that several families share.
#include "model/arch/arch.h"

namespace stoker::model {
namespace {

constexpr TensorSpec kGqaTensorTable[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_qkv.bias", &LayerWeights::bqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_output.bias", &LayerWeights::bo, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate.bias", &LayerWeights::b_gate, Dim::kFf, Dim::kModel, Need::kOptional},
    {"ffn_up.bias", &LayerWeights::b_up, Dim::kFf, Dim::kModel, Need::kOptional},
    {"ffn_down.bias", &LayerWeights::b_down, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
    // Last, for the families that have none.
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kOptional},
};

// The gate of attention first, for the families that have none.
constexpr TensorSpec kNormedQkMoeTensorTable[] = {
    {"attn_gate.weight", &LayerWeights::attn_gate, Dim::kGates},
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kOptional},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf, Dim::kModel, Need::kShared},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf, Need::kShared},
};

// Norms of the feed-forward first, its gate last, with its bias, for the families that lack them.
constexpr TensorSpec kBiasedNormTable[] = {
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_norm.bias", &LayerWeights::b_ffn_norm, Dim::kModel},
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_norm.bias", &LayerWeights::b_attn_norm, Dim::kModel},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_qkv.bias", &LayerWeights::bqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_output.bias", &LayerWeights::bo, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_up.bias", &LayerWeights::b_up, Dim::kFf, Dim::kModel, Need::kOptional},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"ffn_down.bias", &LayerWeights::b_down, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_gate.bias", &LayerWeights::b_gate, Dim::kFf, Dim::kModel, Need::kOptional},
};

constexpr KeySpec kRoutingKeyTable[] = {
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    kSharedCount,
    kSharedWidth,
    kLeadingDense,
    {.key = "expert_group_count", .field = &ModelConfig::n_groups, .max = kMaxExperts},
    {.key = "expert_group_used_count", .field = &ModelConfig::n_used_groups, .max = kMaxExperts},
    kGatingFunc,
    kWeightsNorm,
    kWeightsScale,
};

constexpr GlobalTensorSpec kTiedGlobalTable[] = {
    // First, for the families that rank.
    {"cls.output.weight", &Weights::rank_out, Dim::kLabels, Dim::kModel, Need::kOptional},
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab, Dim::kModel, Need::kOptional},
    {"output.bias", &Weights::output_bias, Dim::kVocab, Dim::kModel, Need::kOptional},
    {"rope_freqs.weight", &Weights::rope_factors, Dim::kRopePairs, Dim::kModel, Need::kOptional},
    {"rope_factors_long.weight", &Weights::rope_long, Dim::kRopePairs, Dim::kModel, Need::kOptional},
    {"rope_factors_short.weight", &Weights::rope_short, Dim::kRopePairs, Dim::kModel, Need::kOptional},
    // Last, for the families that have none.
    {"output_norm.bias", &Weights::b_output_norm, Dim::kModel},
};
constexpr GlobalTensorSpec kUntiedGlobalTable[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab},
    {"rope_freqs.weight", &Weights::rope_factors, Dim::kRopePairs, Dim::kModel, Need::kOptional},
};

}  // namespace

constexpr size_t kTiedGlobalCount = std::size(kTiedGlobalTable);
constexpr size_t kBiasedNormCount = std::size(kBiasedNormTable);
constexpr size_t kGqaTensorCount = std::size(kGqaTensorTable);
const std::span<const TensorSpec> kGqaTensors = std::span(kGqaTensorTable).first(kGqaTensorCount - 1);
const std::span<const TensorSpec> kGqaTensorsAndSelectionBias = kGqaTensorTable;
const std::span<const TensorSpec> kBiasedNormTensors = std::span(kBiasedNormTable).first(kBiasedNormCount - 2);
const std::span<const TensorSpec> kBiasedNormGatedTensors = kBiasedNormTable;
const std::span<const TensorSpec> kOneBiasedNormTensors = std::span(kBiasedNormTable).subspan(2, kBiasedNormCount - 4);
const std::span<const TensorSpec> kNormedQkMoeTensors = std::span(kNormedQkMoeTensorTable).subspan(1);
const std::span<const TensorSpec> kGatedQkMoeTensors = kNormedQkMoeTensorTable;
const std::span<const KeySpec> kRoutingKeys = kRoutingKeyTable;
const std::span<const GlobalTensorSpec> kTiedGlobals = std::span(kTiedGlobalTable).subspan(1, kTiedGlobalCount - 2);
const std::span<const GlobalTensorSpec> kRankingGlobals = std::span(kTiedGlobalTable).first(kTiedGlobalCount - 1);
const std::span<const GlobalTensorSpec> kBiasedNormGlobals = std::span(kTiedGlobalTable).subspan(1);
const std::span<const GlobalTensorSpec> kUntiedGlobals = kUntiedGlobalTable;

}  // namespace stoker::model
