// Command R and its successors: attention and feed-forward read the same LayerNorm (without bias) and are added
// together; logits are scaled. command-r rotates all layers, and R+ norms q and k heads, each with a gain of its own;
// cohere2 (R7B, A) has a window on three of four layers and rotates those only. Source: the published configurations
// (Command R, 2024; Command R7B, 2024; Command A, arXiv:2504.00698).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::cohere {
namespace {

// Command R's own, without the window, comes last.
constexpr KeySpec kKeys[] = {
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .min = 1, .max = 1 << 30},
    {.key = "logit_scale", .field = &ModelConfig::logit_divisor, .required = true, .min = 1e-6, .max = 1e6},
};
constexpr std::span<const KeySpec> kKeys2 = kKeys;

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_q.bias", &LayerWeights::bq, Dim::kQ, Dim::kModel, Need::kOptional},
    {"attn_k.bias", &LayerWeights::bk, Dim::kK, Dim::kModel, Need::kOptional},
    {"attn_v.bias", &LayerWeights::bv, Dim::kV, Dim::kModel, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kHeads, Dim::kHead, Need::kHeadGains},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kKvHeads, Dim::kHead, Need::kHeadGains},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.layer_norm = true;
}
void defaults2(ModelConfig& config) {
  defaults(config);
  config.window = 4096;
  config.sliding_period = 4;
}

Status finish2(ModelConfig& config) {
  config.logit_divisor = 1 / config.logit_divisor;
  return Ok{};
}
Status finish(ModelConfig& config) {
  constexpr int64_t kLayersOfPlus = 64;
  config.head_gains = config.n_layers >= kLayersOfPlus;
  return finish2(config);
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.qk_norm = true, .parallel = true});
  plan.gated_mlp(w, layer, {});
}
void build_layer2(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.rotate = plan.config().window_of(layer) != 0, .parallel = true});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kCommandR, kCohere2;
const Arch kCommandR{.name = "command-r",
                     .keys = kKeys2.last(1),
                     .tensors = kTensors,
                     .globals = kTiedGlobals,
                     .defaults = defaults,
                     .finish = finish,
                     .build_layer = build_layer};
const Arch kCohere2{.name = "cohere2",
                    .keys = kKeys2,
                    .tensors = kTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults2,
                    .finish = finish2,
                    .build_layer = build_layer2};

}  // namespace stoker::model::cohere
