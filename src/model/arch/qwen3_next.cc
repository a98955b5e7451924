// Qwen3-Next, Qwen3.5 and 3.6: of each four layers three have a gated delta rule in place of attention, whose state
// does not grow, and the fourth has attention whose output is gated. Dense (`qwen35`) or with experts and a shared one.
// Source: Gated Delta Networks (arXiv:2412.06464); Qwen3-Next as its authors published it.
#include <algorithm>

#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::qwen3_next {
namespace {

constexpr KeySpec kStateKeys[] = {
    kConvTaps,
    kStateSize,
    kStateGroups,
    kStateHeadCount,
    kStateInnerSize,
    {.key = "attention.recurrent_layers", .field = &ModelConfig::recurrent_layers, .max = 1},
    {.key = "full_attention_interval", .field = &ModelConfig::attention_interval, .min = 1, .max = 512},
    // From here on of models with experts.
    kExpertCount,
    kExpertUsedCount,
    {.key = "expert_feed_forward_length", .field = &ModelConfig::expert_ff_dim, .max = 1 << 24},
    kSharedWidth,
};
constexpr std::span<const KeySpec> kDenseKeys = std::span(kStateKeys).first(7);

// The first is ssm_in, which Qwen3-Next alone has; then what both have; then the gates of Qwen3-Next, or of the others.
constexpr TensorSpec kStateIn[] = {
    of_recurrent({"ssm_in.weight", &LayerWeights::state_in, Dim::kStateIn, Dim::kModel, Need::kOptional}),
    of_recurrent({"attn_qkv.weight", &LayerWeights::wqkv, Dim::kConvChannels, Dim::kModel, Need::kUnlessStateIn}),
    of_recurrent({"attn_gate.weight", &LayerWeights::state_gate, Dim::kStateInner, Dim::kModel, Need::kUnlessStateIn}),
    of_recurrent({"ssm_ba.weight", &LayerWeights::beta_decay, Dim::kTwoStateHeads}),
};
constexpr TensorSpec kSplitIn[] = {
    of_recurrent({"attn_qkv.weight", &LayerWeights::wqkv, Dim::kConvChannels}),
    of_recurrent({"attn_gate.weight", &LayerWeights::state_gate, Dim::kStateInner}),
    of_recurrent({"ssm_beta.weight", &LayerWeights::beta, Dim::kStateHeads}),
    of_recurrent({"ssm_alpha.weight", &LayerWeights::decay, Dim::kStateHeads}),
};
constexpr TensorSpec kMixers[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    of_recurrent({"ssm_conv1d.weight", &LayerWeights::conv, Dim::kConvChannels, Dim::kTaps}),
    of_recurrent({"ssm_dt.bias", &LayerWeights::b_decay, Dim::kStateHeads}),
    of_recurrent({"ssm_a", &LayerWeights::decay_a, Dim::kStateHeads}),
    of_recurrent({"ssm_norm.weight", &LayerWeights::state_norm, Dim::kStateValue}),
    of_recurrent({"ssm_out.weight", &LayerWeights::wo, Dim::kModel, Dim::kStateInner}),
    of_attention({"attn_q.weight", &LayerWeights::wq, Dim::kHeadsQAndGate}),
    of_attention({"attn_k.weight", &LayerWeights::wk, Dim::kK}),
    of_attention({"attn_v.weight", &LayerWeights::wv, Dim::kV}),
    of_attention({"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHead}),
    of_attention({"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kHead}),
    of_attention({"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut}),
    {"post_attention_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
};
constexpr TensorSpec kDense[] = {
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};
constexpr TensorSpec kExperts[] = {
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts},
    {"ffn_gate_exps.weight", &LayerWeights::expert_gate, Dim::kExpertFf},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf},
    {"ffn_gate_inp_shexp.weight", &LayerWeights::shared_weight, Dim::kOne},
    {"ffn_gate_shexp.weight", &LayerWeights::shared_gate, Dim::kSharedFf},
    {"ffn_up_shexp.weight", &LayerWeights::shared_up, Dim::kSharedFf},
    {"ffn_down_shexp.weight", &LayerWeights::shared_down, Dim::kModel, Dim::kSharedFf},
};

template <size_t A, size_t B, size_t C>
constexpr std::array<TensorSpec, A + B + C> joined(const TensorSpec (&a)[A], const TensorSpec (&b)[B],
                                                   const TensorSpec (&c)[C]) {
  std::array<TensorSpec, A + B + C> all{};
  std::copy(std::begin(a), std::end(a), all.begin());
  std::copy(std::begin(b), std::end(b), all.begin() + A);
  std::copy(std::begin(c), std::end(c), all.begin() + A + B);
  return all;
}
constexpr auto kQwen3NextTensors = joined(kStateIn, kMixers, kExperts);
constexpr auto kQwen35Tensors = joined(kSplitIn, kMixers, kDense);
constexpr auto kQwen35MoeTensors = joined(kSplitIn, kMixers, kExperts);

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.renormalize = true;
  config.attention_interval = 4;
}
void defaults_of_axes(ModelConfig& config) {
  defaults(config);
  config.rope_axes = true;
}

Status finish(ModelConfig& config) {
  config.state_v_dim = config.state_k_dim;
  STOKER_TRY_STATUS(check_recurrence(config));
  if (config.state_inner_dim != config.n_state_heads * config.state_v_dim) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("key ", config.arch->name, ".ssm.inner_size is ", config.state_inner_dim, ", wanted ",
                         config.n_state_heads * config.state_v_dim, ": ssm.time_step_rank heads of ssm.state_size")};
  }
  if (config.n_experts > 0 && config.expert_ff_dim == 0) {
    config.expert_ff_dim = config.ff_dim[0] / config.n_used_experts;
  }
  if (config.n_experts > 0 && config.shared_ff_dim == 0) config.shared_ff_dim = config.ff_dim[0];
  return Ok{};
}

template <bool kTiled>
void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  if (plan.config().is_recurrent(layer)) {
    plan.gated_delta(w, layer, kTiled);
  } else {
    plan.attention(w, layer, {.qk_norm = true, .gated = true});
  }
  plan.feed_forward(w, layer);
}

}  // namespace

extern const Arch kQwen3Next, kQwen35, kQwen35Moe;
const Arch kQwen3Next{.name = "qwen3next",
                      .keys = kStateKeys,
                      .tensors = kQwen3NextTensors,
                      .globals = kTiedGlobals,
                      .defaults = defaults,
                      .finish = finish,
                      .build_layer = build_layer<false>};
const Arch kQwen35{.name = "qwen35",
                   .keys = kDenseKeys,
                   .tensors = kQwen35Tensors,
                   .globals = kTiedGlobals,
                   .defaults = defaults_of_axes,
                   .finish = finish,
                   .build_layer = build_layer<true>};
const Arch kQwen35Moe{.name = "qwen35moe",
                      .keys = kStateKeys,
                      .tensors = kQwen35MoeTensors,
                      .globals = kTiedGlobals,
                      .defaults = defaults_of_axes,
                      .finish = finish,
                      .build_layer = build_layer<true>};

}  // namespace stoker::model::qwen3_next
