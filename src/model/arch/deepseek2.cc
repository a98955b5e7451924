// Multi-head latent attention: DeepSeek V2, V2-Lite, V3 and R1, Kimi K2, GLM-4.7-Flash, and Mistral 4 beside them. One
// latent row per position holds keys and values of all heads; the first layers are dense, the others have experts,
// chosen by softmax or by sigmoid with a selection bias, in groups, and shared ones.
// Source: DeepSeek-V2 (arXiv:2405.04434), DeepSeek-V3 (arXiv:2412.19437).
#include "model/arch/latent.h"
#include "model/plan.h"

namespace stoker::model::deepseek2 {
namespace {
Status finish_deepseek(ModelConfig& config) { return finish_latent(config, LatentScale::kOwn); }
Status finish_mistral(ModelConfig& config) { return finish_latent(config, LatentScale::kYarn); }
}  // namespace

extern const Arch kDeepseek2, kMistral4;
const Arch kDeepseek2{.name = "deepseek2",
                      .keys = kLatentKeys,
                      .tensors = kLatentTensors,
                      .globals = kTiedGlobals,
                      .defaults = latent_defaults,
                      .finish = finish_deepseek,
                      .build_layer = build_latent_layer};
const Arch kMistral4{.name = "mistral4",
                     .keys = kLatentKeys,
                     .tensors = kLatentTensors,
                     .globals = kTiedGlobals,
                     .defaults = latent_defaults,
                     .finish = finish_mistral,
                     .build_layer = build_latent_layer};

}  // namespace stoker::model::deepseek2
