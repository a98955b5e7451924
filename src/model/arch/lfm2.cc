// LFM2, dense and with experts: most layers have a short convolution between two gates in place of attention, the
// others attention with norms on q and k heads. With experts the first layers are dense, and the others choose theirs
// by sigmoid with a selection bias. Source: LFM2 technical report (arXiv:2511.23404); key and tensor names as in files.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::lfm2 {
namespace {

constexpr KeySpec kKeys[] = {
    kHeadsOrNone,
    {.key = "shortconv.l_cache", .field = &ModelConfig::conv_taps, .required = true, .min = 1, .max = 64},
    // From here on of models with experts.
    kExpertCount,
    kExpertUsedCount,
    kExpertWidth,
    kLeadingDense,
    {.key = "expert_gating_func", .field = &ModelConfig::gating, .required = true, .min = 1, .max = 4},
};
constexpr std::span<const KeySpec> kDenseKeys = std::span(kKeys).first(2);

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    of_recurrent({"shortconv.in_proj.weight", &LayerWeights::state_in, Dim::kThreeModel}),
    of_recurrent({"shortconv.conv.weight", &LayerWeights::conv, Dim::kConvChannels, Dim::kTaps}),
    of_recurrent({"shortconv.out_proj.weight", &LayerWeights::wo, Dim::kModel}),
    of_attention({"attn_q.weight", &LayerWeights::wq, Dim::kQ}),
    of_attention({"attn_k.weight", &LayerWeights::wk, Dim::kK}),
    of_attention({"attn_v.weight", &LayerWeights::wv, Dim::kV}),
    of_attention({"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead}),
    of_attention({"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead}),
    of_attention({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut}),
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    // From here on of models with experts.
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"exp_probs_b.bias", &LayerWeights::selection_bias, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},
};
constexpr std::span<const TensorSpec> kDenseTensors = std::span(kTensors).first(14);

constexpr GlobalTensorSpec kGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"token_embd_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab, Dim::kModel, Need::kOptional},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.renormalize = true;
}

Status finish(ModelConfig& config) {
  STOKER_TRY_STATUS(recurrent_where_no_heads(config, "shortconv.l_cache"));
  config.n_state_heads = 1;
  config.state_v_dim = config.dim;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  if (plan.config().is_recurrent(layer)) {
    plan.short_convolution(w, layer);
  } else {
    plan.attention(w, layer, {.qk_norm = true});
  }
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kLfm2, kLfm2Moe;
const Arch kLfm2{.name = "lfm2",
                 .keys = kDenseKeys,
                 .tensors = kDenseTensors,
                 .globals = kGlobals,
                 .defaults = defaults,
                 .finish = finish,
                 .build_layer = build_layer};
const Arch kLfm2Moe{.name = "lfm2moe",
                    .keys = kKeys,
                    .tensors = kTensors,
                    .globals = kGlobals,
                    .defaults = defaults,
                    .finish = finish,
                    .build_layer = build_layer};

}  // namespace stoker::model::lfm2
