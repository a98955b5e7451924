// Families whose layer is Llama's and whose files only say so under another name: InternLM 2 and 2.5, XVERSE, Baichuan,
// whose 13B has ALiBi in place of rotation, and with rotation of halves EXAONE 3 and 3.5. Sources: InternLM2
// (arXiv:2403.17297), Baichuan 2 (arXiv:2309.10305), EXAONE 3.0 (arXiv:2408.03541).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::internlm2 {
namespace {

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kInterleaved; }
void exaone_defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kHalves; }

/// No key says so: the 13B, which has so many layers, has ALiBi in place of rotation.
Status baichuan_finish(ModelConfig& config) {
  constexpr int64_t kLayersOf13B = 40;
  config.alibi = config.n_layers == kLayersOf13B;
  if (config.alibi) config.rotates = false;
  return Ok{};
}

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {});
}

}  // namespace

extern const Arch kInternLm2, kXverse, kBaichuan, kExaone;
const Arch kInternLm2{.name = "internlm2",
                      .keys = {},
                      .tensors = kGqaTensors,
                      .globals = kUntiedGlobals,
                      .defaults = defaults,
                      .finish = nullptr,
                      .build_layer = build_layer};
const Arch kXverse{.name = "xverse",
                   .keys = {},
                   .tensors = kGqaTensors,
                   .globals = kUntiedGlobals,
                   .defaults = defaults,
                   .finish = nullptr,
                   .build_layer = build_layer};
const Arch kBaichuan{.name = "baichuan",
                     .keys = {},
                     .tensors = kGqaTensors,
                     .globals = kUntiedGlobals,
                     .defaults = defaults,
                     .finish = baichuan_finish,
                     .build_layer = build_layer};
const Arch kExaone{.name = "exaone",
                   .keys = {},
                   .tensors = kGqaTensors,
                   .globals = kTiedGlobals,
                   .defaults = exaone_defaults,
                   .finish = nullptr,
                   .build_layer = build_layer};

}  // namespace stoker::model::internlm2
