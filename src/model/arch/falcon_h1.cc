// Falcon H1: in each layer a Mamba-2 scan and attention beside it read the same, and what both give is added; then a
// feed-forward block. The family's multipliers are in the weights of its files.
// Source: Falcon-H1 (arXiv:2507.22448); Mamba-2 (arXiv:2405.21060).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::falcon_h1 {
namespace {

constexpr KeySpec kKeys[] = {kConvTaps, kStateSize, kStateGroups, kStateHeadCount, kStateInnerSize};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"ssm_in.weight", &LayerWeights::state_in, Dim::kScanIn},
    {"ssm_conv1d.weight", &LayerWeights::conv, Dim::kConvChannels, Dim::kTaps},
    {"ssm_conv1d.bias", &LayerWeights::b_conv, Dim::kConvChannels, Dim::kModel, Need::kOptional},
    {"ssm_dt.bias", &LayerWeights::b_decay, Dim::kStateHeads},
    with_unit({"ssm_a", &LayerWeights::decay_a, Dim::kStateHeads}),
    with_unit({"ssm_d", &LayerWeights::state_skip, Dim::kStateHeads}),
    {"ssm_norm.weight", &LayerWeights::state_norm, Dim::kKeyHeads, Dim::kGroupInner, Need::kOptional},
    {"ssm_out.weight", &LayerWeights::state_out, Dim::kModel, Dim::kStateInner},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_norm", &LayerWeights::ffn_norm, Dim::kModel},  // without ".weight"
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.recurs_beside = true;
}

Status finish(ModelConfig& config) {
  STOKER_TRY_STATUS(finish_scan(config));
  return check_recurrence(config);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.scan(w, layer);
  plan.attention(w, layer, {.beside = true});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kFalconH1;
const Arch kFalconH1{.name = "falcon-h1",
                     .keys = kKeys,
                     .tensors = kTensors,
                     .globals = kTiedGlobals,
                     .defaults = defaults,
                     .finish = finish,
                     .build_layer = build_layer};

}  // namespace stoker::model::falcon_h1
