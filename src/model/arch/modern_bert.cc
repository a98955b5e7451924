// ModernBERT (GTE, Nomic, Granite Embedding of that kind): all tokens see each other, but in two of three layers those
// half a window away; norms before the blocks, without biases, and a gate. Source: ModernBERT (arXiv:2412.13663).
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::modern_bert {
namespace {

constexpr int64_t kPeriod = 3;  // of layers, the first of which sees everything

constexpr KeySpec kKeys[] = {
    {.key = "attention.sliding_window", .field = &ModelConfig::window, .min = 0, .max = 1 << 30},
    {.key = "rope.freq_base_swa", .field = &ModelConfig::rope_base_swa, .min = 1e-3, .max = 1e15},
};

constexpr TensorSpec kTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel, Dim::kModel, Need::kAfterFirst},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_up.weight", &LayerWeights::gate_up, Dim::kTwoFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};
constexpr GlobalTensorSpec kGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"token_embd_norm.weight", &Weights::embedding_norm, Dim::kModel},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"cls.weight", &Weights::rank_dense, Dim::kModel, Dim::kModel, Need::kOptional},
    {"cls.norm.weight", &Weights::rank_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"cls.output.weight", &Weights::rank_out, Dim::kLabels, Dim::kModel, Need::kOptional},
    {"cls.output.bias", &Weights::b_rank_out, Dim::kLabels, Dim::kModel, Need::kOptional},
};

void defaults(ModelConfig& config) {
  config.causal = false;
  config.layer_norm = true;
  config.rope_pairs = RopePairs::kHalves;
  config.rope_base_swa = 10000;
  config.rank_dense_activation = RankActivation::kGeluErf;
  // Files without classifier.pooling_type are of the time before it, when there was only GTE's, which averages.
  config.rank_pooling = static_cast<int64_t>(Pooling::kMean);
}

Status finish(ModelConfig& config) {
  for (size_t layer = 0; layer < config.sliding.size(); ++layer) {
    config.sliding[layer] = config.window > 0 && static_cast<int64_t>(layer) % kPeriod != 0;
  }
  const std::string& name = config.hidden_activation;
  if (name.empty() || name == "gelu" || name == "silu") return Ok{};
  return Error{ErrorCode::kUnsupported,
               str_cat("key modern-bert.hidden_activation is ", quoted(name), "; this version runs gelu and silu")};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  const bool silu = plan.config().hidden_activation == "silu";
  plan.attention(w, layer, {.pre_norm = layer > 0});
  plan.gated_mlp(w, layer, {.activation = silu ? Activation::kSilu : Activation::kGeluErf});
}

}  // namespace

extern const Arch kModernBert;
const Arch kModernBert{.name = "modern-bert",
                       .keys = kKeys,
                       .tensors = kTensors,
                       .globals = kGlobals,
                       .defaults = defaults,
                       .finish = finish,
                       .build_layer = build_layer};

}  // namespace stoker::model::modern_bert
