// OLMo 2 and 3: norms after each block only, and on the whole vectors of q and k. OLMo 3 has a window on three of four
// layers, which rotate without the scaling of the others.
// Sources: OLMo 2 (arXiv:2501.00656), OLMo 3 (2025).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::olmo2 {
namespace {

constexpr KeySpec kKeys[] = {
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .max = 1 << 30},
};

constexpr TensorSpec kTensors[] = {
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_q_norm.weight", &LayerWeights::q_norm, Dim::kQ},
    {"attn_k_norm.weight", &LayerWeights::k_norm, Dim::kK},
    {"post_attention_norm.weight", &LayerWeights::post_attn_norm, Dim::kModel},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"post_ffw_norm.weight", &LayerWeights::post_ffn_norm, Dim::kModel},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.sliding_period = 4;
  config.rope_swa_plain = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.pre_norm = false, .whole_qk_norm = true, .post_norm = true});
  plan.gated_mlp(w, layer, {.pre_norm = false, .post_norm = true});
}

}  // namespace

extern const Arch kOlmo2;
const Arch kOlmo2{.name = "olmo2",
                  .keys = kKeys,
                  .tensors = kTensors,
                  .globals = kUntiedGlobals,
                  .defaults = defaults,
                  .finish = nullptr,
                  .build_layer = build_layer};

}  // namespace stoker::model::olmo2
