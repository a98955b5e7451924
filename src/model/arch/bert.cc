// Encoders that answer with vectors: all tokens of a text see each other. BERT and its kin (MiniLM, BGE, E5, GTE) have
// a table of positions, Nomic's rotates and has a gate, or experts without one, Jina's second one has ALiBi and a gate.
// Each block's output is added and then all of it normed. Sources: BERT (arXiv:1810.04805), Nomic Embed
// (arXiv:2402.01613), Jina Embeddings 2 (arXiv:2310.19923).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::bert {
namespace {

// Experts, what goes up, what all have, and what has a gate: each family's are next to each other.
constexpr TensorSpec kTensors[] = {
    {"ffn_gate_inp.weight", &LayerWeights::router, Dim::kExperts, Dim::kModel, Need::kExperts},
    {"ffn_up_exps.weight", &LayerWeights::expert_up, Dim::kExpertFf, Dim::kModel, Need::kExperts},
    {"ffn_down_exps.weight", &LayerWeights::expert_down, Dim::kModel, Dim::kExpertFf, Need::kExperts},

    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kDense},
    {"ffn_up.bias", &LayerWeights::b_up, Dim::kFf, Dim::kModel, Need::kOptional},

    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf, Need::kDense},
    {"ffn_down.bias", &LayerWeights::b_down, Dim::kModel, Dim::kModel, Need::kOptional},
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
    {"attn_output_norm.weight", &LayerWeights::attn_out_norm, Dim::kModel},
    {"attn_output_norm.bias", &LayerWeights::b_attn_out_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"layer_output_norm.weight", &LayerWeights::layer_out_norm, Dim::kModel},
    {"layer_output_norm.bias", &LayerWeights::b_layer_out_norm, Dim::kModel, Dim::kModel, Need::kOptional},

    {"ffn_gate.weight", &LayerWeights::gate, Dim::kFf, Dim::kModel, Need::kOptional},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf, Dim::kModel, Need::kWithGate},
    {"ffn_up.weight", &LayerWeights::gate_up, Dim::kTwoFf, Dim::kModel, Need::kUnlessGate},
};
constexpr size_t kOfExperts = 3, kUpwards = 2, kGated = 3, kAll = std::size(kTensors);
constexpr std::span<const TensorSpec> kMoeTensors = std::span(kTensors).first(kAll - kGated),
                                      kPlainTensors = kMoeTensors.subspan(kOfExperts),
                                      kGatedTensors = std::span(kTensors).subspan(kOfExperts + kUpwards);

// Every second layer has experts.
constexpr KeySpec kMoeKeys[] = {
    kExpertCount,
    kExpertUsedCount,
    {.key = "moe_every_n_layers", .field = &ModelConfig::expert_interval, .required = true, .min = 2, .max = 2},
};

// What Jina's rerankers have, what all have, BERT's table of positions and what its rerankers have.
constexpr GlobalTensorSpec kGlobals[] = {
    {"cls.weight", &Weights::rank_out, Dim::kLabels, Dim::kModel, Need::kOptional},
    {"cls.bias", &Weights::b_rank_out, Dim::kLabels, Dim::kModel, Need::kOptional},

    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"token_types.weight", &Weights::token_types, Dim::kTokenTypes, Dim::kModel, Need::kOptional},
    {"token_embd_norm.weight", &Weights::embedding_norm, Dim::kModel},
    {"token_embd_norm.bias", &Weights::b_embedding_norm, Dim::kModel, Dim::kModel, Need::kOptional},

    {"position_embd.weight", &Weights::positions, Dim::kContext},
    {"cls.weight", &Weights::rank_dense, Dim::kModel, Dim::kModel, Need::kOptional},
    {"cls.bias", &Weights::b_rank_dense, Dim::kModel, Dim::kModel, Need::kOptional},
    {"cls.output.weight", &Weights::rank_out, Dim::kLabels, Dim::kModel, Need::kOptional},
    {"cls.output.bias", &Weights::b_rank_out, Dim::kLabels, Dim::kModel, Need::kOptional},
};
constexpr size_t kOfJina = 2, kOfAll = 4;
constexpr std::span<const GlobalTensorSpec> kJinaGlobals = std::span(kGlobals).first(kOfJina + kOfAll),
                                            kPlainGlobals = kJinaGlobals.subspan(kOfJina),
                                            kBertGlobals = std::span(kGlobals).subspan(kOfJina);

void bert_defaults(ModelConfig& config) {
  config.causal = false;
  config.layer_norm = true;
  config.rotates = false;
}
void nomic_defaults(ModelConfig& config) {
  config.causal = false;
  config.layer_norm = true;
  config.rope_pairs = RopePairs::kHalves;
}
void jina_defaults(ModelConfig& config) {
  bert_defaults(config);
  config.alibi = true;
  config.rank_activation = RankActivation::kTanh;
}

void bert_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.pre_norm = false, .stream_norm = true});
  plan.mlp(w, layer, {.activation = Activation::kGeluErf, .pre_norm = false, .stream_norm = true});
}
void nomic_moe_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  if (!w.router) return bert_layer(plan, w, layer);
  plan.attention(w, layer, {.pre_norm = false, .stream_norm = true});
  plan.moe(w, layer, {.activation = Activation::kGeluErf, .pre_norm = false, .stream_norm = true});
}
void nomic_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.pre_norm = false, .stream_norm = true});
  plan.gated_mlp(w, layer, {.activation = Activation::kSilu, .pre_norm = false, .stream_norm = true});
}
void jina_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.pre_norm = false, .stream_norm = true});
  plan.gated_mlp(w, layer, {.activation = Activation::kGeluErf, .pre_norm = false, .stream_norm = true});
}

}  // namespace

extern const Arch kBert, kNomicBert, kNomicBertMoe, kJinaBert2;
const Arch kBert{.name = "bert",
                 .keys = {},
                 .tensors = kPlainTensors,
                 .globals = kBertGlobals,
                 .defaults = bert_defaults,
                 .finish = nullptr,
                 .build_layer = bert_layer};
const Arch kNomicBert{.name = "nomic-bert",
                      .keys = {},
                      .tensors = kGatedTensors,
                      .globals = kPlainGlobals,
                      .defaults = nomic_defaults,
                      .finish = nullptr,
                      .build_layer = nomic_layer};
const Arch kNomicBertMoe{.name = "nomic-bert-moe",
                         .keys = kMoeKeys,
                         .tensors = kMoeTensors,
                         .globals = kPlainGlobals,
                         .defaults = nomic_defaults,
                         .finish = nullptr,
                         .build_layer = nomic_moe_layer};
const Arch kJinaBert2{.name = "jina-bert-v2",
                      .keys = {},
                      .tensors = kGatedTensors,
                      .globals = kJinaGlobals,
                      .defaults = jina_defaults,
                      .finish = nullptr,
                      .build_layer = jina_layer};

}  // namespace stoker::model::bert
