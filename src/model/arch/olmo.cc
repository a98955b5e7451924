// OLMo, the first: norms that subtract the mean and have no gain; in some sizes q, k and v are cut off.
// Source: OLMo (arXiv:2402.00838). Files keep q and k rows permuted for this rotation.
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::olmo {
namespace {

constexpr KeySpec kKeys[] = {{.key = "attention.clamp_kqv", .field = &ModelConfig::qkv_limit, .max = 1e6}};

constexpr TensorSpec kTensors[] = {
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_q.weight", &LayerWeights::wq, Dim::kQ, Dim::kModel, Need::kUnlessFused},
    {"attn_k.weight", &LayerWeights::wk, Dim::kK, Dim::kModel, Need::kUnlessFused},
    {"attn_v.weight", &LayerWeights::wv, Dim::kV, Dim::kModel, Need::kUnlessFused},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};
constexpr GlobalTensorSpec kGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"output.weight", &Weights::output, Dim::kVocab, Dim::kModel, Need::kOptional},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.layer_norm = config.plain_norms = true;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kOlmo;
const Arch kOlmo{.name = "olmo",
                 .keys = kKeys,
                 .tensors = kTensors,
                 .globals = kGlobals,
                 .defaults = defaults,
                 .finish = nullptr,
                 .build_layer = build_layer};

}  // namespace stoker::model::olmo
