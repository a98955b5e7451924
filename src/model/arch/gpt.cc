// Families with LayerNorm and a feed-forward block without a gate. GPT-NeoX and Pythia, whose key says whether
// attention and feed-forward stand beside each other; Phi 1 and 2 and Falcon, where they do and read one norm, but for
// attention's own in Falcon 40B; CodeShell and StarCoder 2; Nemotron, Minitron and Jais 2, whose activation is a
// squared ReLU; GPT-2 and StarCoder 1, which have a table of positions in place of rotation. Sources: GPT-NeoX
// (arXiv:2204.06745), Phi-1.5 (arXiv:2309.05463), Falcon (arXiv:2311.16867), CodeShell (arXiv:2403.15747), StarCoder 2
// (arXiv:2402.19173), Nemotron-4 (arXiv:2402.16819), GPT-2 (2019), StarCoder (arXiv:2305.06161).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::gpt {
namespace {

constexpr KeySpec kNeoXKeys[] = {
    {.key = "use_parallel_residual", .field = &ModelConfig::parallel, .required = true},
};

constexpr TensorSpec kFalconTensors[] = {
    {"attn_norm.weight", &LayerWeights::ffn_norm, Dim::kModel},  // whatever its name: of both where there is no second
    {"attn_norm.bias", &LayerWeights::b_ffn_norm, Dim::kModel},
    {"attn_norm_2.weight", &LayerWeights::attn_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"attn_norm_2.bias", &LayerWeights::b_attn_norm, Dim::kModel, Dim::kModel, Need::kOptional},
    {"attn_qkv.weight", &LayerWeights::wqkv, Dim::kQkv},
    {"attn_output.weight", &LayerWeights::wo, Dim::kModel, Dim::kAttnOut},
    {"ffn_up.weight", &LayerWeights::up, Dim::kFf},
    {"ffn_down.weight", &LayerWeights::down, Dim::kModel, Dim::kFf},
};

constexpr GlobalTensorSpec kGpt2Globals[] = {
    {"token_embd.weight", &Weights::embedding, Dim::kVocab},
    {"position_embd.weight", &Weights::positions, Dim::kContext},
    {"output_norm.weight", &Weights::output_norm, Dim::kModel},
    {"output_norm.bias", &Weights::b_output_norm, Dim::kModel},
    {"output.weight", &Weights::output, Dim::kVocab, Dim::kModel, Need::kOptional},
};

void defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.layer_norm = true;
}
void gpt2_defaults(ModelConfig& config) {
  config.layer_norm = true;
  config.rotates = false;
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.parallel = plan.config().parallel});
  plan.mlp(w, layer, {.activation = Activation::kGelu});
}
void parallel_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {.parallel = true});
  plan.mlp(w, layer, {.activation = Activation::kGelu});
}
void nemotron_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.mlp(w, layer, {.activation = Activation::kReluSquared});
}

}  // namespace

extern const Arch kGptNeoX, kPhi2, kFalcon, kCodeShell, kStarCoder2, kNemotron, kJais2, kGpt2, kStarCoder;
const Arch kJais2{.name = "jais2",
                  .keys = {},
                  .tensors = kBiasedNormTensors,
                  .globals = kBiasedNormGlobals,
                  .defaults = defaults,
                  .finish = nullptr,
                  .build_layer = nemotron_layer};
const Arch kGptNeoX{.name = "gptneox",
                    .keys = kNeoXKeys,
                    .tensors = kBiasedNormTensors,
                    .globals = kBiasedNormGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};
const Arch kPhi2{.name = "phi2",
                 .keys = {},
                 .tensors = kOneBiasedNormTensors,
                 .globals = kBiasedNormGlobals,
                 .defaults = defaults,
                 .finish = nullptr,
                 .build_layer = parallel_layer};
const Arch kFalcon{.name = "falcon",
                   .keys = {},
                   .tensors = kFalconTensors,
                   .globals = kBiasedNormGlobals,
                   .defaults = defaults,
                   .finish = nullptr,
                   .build_layer = parallel_layer};
const Arch kCodeShell{.name = "codeshell",
                      .keys = {},
                      .tensors = kBiasedNormTensors,
                      .globals = kBiasedNormGlobals,
                      .defaults = defaults,
                      .finish = nullptr,
                      .build_layer = build_layer};
const Arch kStarCoder2{.name = "starcoder2",
                       .keys = {},
                       .tensors = kBiasedNormTensors,
                       .globals = kBiasedNormGlobals,
                       .defaults = defaults,
                       .finish = nullptr,
                       .build_layer = build_layer};
const Arch kNemotron{.name = "nemotron",
                     .keys = {},
                     .tensors = kBiasedNormTensors,
                     .globals = kBiasedNormGlobals,
                     .defaults = defaults,
                     .finish = nullptr,
                     .build_layer = nemotron_layer};
const Arch kGpt2{.name = "gpt2",
                 .keys = {},
                 .tensors = kBiasedNormTensors,
                 .globals = kGpt2Globals,
                 .defaults = gpt2_defaults,
                 .finish = nullptr,
                 .build_layer = build_layer};
const Arch kStarCoder{.name = "starcoder",
                      .keys = {},
                      .tensors = kBiasedNormTensors,
                      .globals = kGpt2Globals,
                      .defaults = gpt2_defaults,
                      .finish = nullptr,
                      .build_layer = build_layer};

}  // namespace stoker::model::gpt
