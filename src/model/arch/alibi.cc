// Families that have ALiBi in place of rotation: BLOOM, whose embeddings are normed; MPT, which may have a table of
// positions instead and cuts off q, k and v; Jais, whose scores are divided by the dimension of a head; Refact,
// otherwise Llama's layer. Sources: BLOOM (arXiv:2211.05100), MPT (2023), Jais (arXiv:2308.16149), Refact (2023).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::alibi {
namespace {

constexpr KeySpec kMaxBias{.key = "attention.max_alibi_bias", .field = &ModelConfig::alibi_max, .max = 1e3};
constexpr KeySpec kMptKeys[] = {
    kMaxBias,
    {.key = "attention.clamp_kqv", .field = &ModelConfig::qkv_limit, .max = 1e6},
};
constexpr KeySpec kJaisKeys[] = {kMaxBias};

constexpr TensorSpec kMptTensors[] = {
    {"attn_norm.weight", &LayerWeights::attn_norm, Dim::kModel},
    {"attn_norm.bias", &LayerWeights::b_attn_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv},
    {"attn_qkv.bias", &LayerWeights::bqkv, Dim::kQkv, Dim::kModel, Need::kOptional},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"attn_output.bias", &LayerWeights::bo, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},
    {"ffn_norm.bias", &LayerWeights::b_ffn_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_up.bias", &LayerWeights::b_up, Dim::kFf, Dim::kModel, Need::kOptional},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
    {"ffn_down.bias", &LayerWeights::b_down, Dim::kModel, Dim::kModel, Need::kOptional},
};

constexpr GlobalTensorSpec kBloomGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"token_embd_norm.weight", &Weights::embedding_norm, Dim::kModel},
    {"token_embd_norm.bias", &Weights::b_embedding_norm, Dim::kModel},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output_norm.bias", &Weights::b_output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab, Dim::kModel, Need::kOptional},
};
constexpr GlobalTensorSpec kMptGlobals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"position_embd.weight", &Weights::positions, Dim::kContext, Dim::kModel, Need::kOptional},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output_norm.bias", &Weights::b_output_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"output.weight", &Weights::output, Dim::kVocab, Dim::kModel, Need::kOptional},
};

void refact_defaults(ModelConfig& config) {
  config.alibi = true;
  config.rotates = false;
}
void bloom_defaults(ModelConfig& config) {
  refact_defaults(config);
  config.layer_norm = true;
}
void defaults_by_key(ModelConfig& config) {
  bloom_defaults(config);
  config.alibi_max = 0;
}

Status mpt_finish(ModelConfig& config) {
  config.alibi = config.alibi_max > 0;
  return Ok{};
}
Status jais_finish(ModelConfig& config) {
  const int64_t head = config.k_dim ? config.k_dim : config.dim / config.n_heads[0];
  config.attn_scale = 1 / static_cast<float>(head);
  return mpt_finish(config);
}

void bloom_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.mlp(w, layer, {.activation = Activation::kGelu});
}
void mpt_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.mlp(w, layer, {.activation = Activation::kGeluErf});
}
void gated_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kBloom, kMpt, kJais, kRefact;
const Arch kBloom{.name = "bloom",
                  .keys = {},
                  .tensors = kBiasedNormTensors,
                  .globals = kBloomGlobals,
                  .defaults = bloom_defaults,
                  .finish = nullptr,
                  .build_layer = bloom_layer};
const Arch kMpt{.name = "mpt",
                .keys = kMptKeys,
                .tensors = kMptTensors,
                .globals = kMptGlobals,
                .defaults = defaults_by_key,
                .finish = mpt_finish,
                .build_layer = mpt_layer};
const Arch kJais{.name = "jais",
                 .keys = kJaisKeys,
                 .tensors = kBiasedNormGatedTensors,
                 .globals = kBiasedNormGlobals,
                 .defaults = defaults_by_key,
                 .finish = jais_finish,
                 .build_layer = gated_layer};
const Arch kRefact{.name = "refact",
                   .keys = {},
                   .tensors = kGqaTensors,
                   .globals = kTiedGlobals,
                   .defaults = refact_defaults,
                   .finish = nullptr,
                   .build_layer = gated_layer};

}  // namespace stoker::model::alibi
