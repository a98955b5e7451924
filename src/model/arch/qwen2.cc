// Qwen1.5, Qwen2, Qwen2.5, QwQ and distills on them, and the text part of Qwen2-VL and 2.5-VL (text has the same
// position on all axes): pre-norm, grouped-query attention with biases on q, k and v, rotation of half-split pairs,
// SwiGLU; openPangu Embedded, which is the same with a bias behind attention. Sources: Qwen2 technical report
// (arXiv:2407.10671), Pangu Embedded (arXiv:2505.22375).
#include "model/arch/arch.h"
#include "model/plan.h"

namespace stoker::model::qwen2 {
namespace {

void defaults(ModelConfig& config) { config.rope_pairs = RopePairs::kHalves; }

void build_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.attention(w, layer, {});
  plan.gated_mlp(w, layer, {.activation = Activation::kSilu});
}

}  // namespace

extern const Arch kQwen2, kQwen2Vl, kPangu;
const Arch kPangu{.name = "pangu-embedded",
                  .keys = {},
                  .tensors = kGqaTensors,
                  .globals = kTiedGlobals,
                  .defaults = defaults,
                  .finish = nullptr,
                  .build_layer = build_layer};
const Arch kQwen2{.name = "qwen2",
                  .keys = {},
                  .tensors = kGqaTensors,
                  .globals = kTiedGlobals,
                  .defaults = defaults,
                  .finish = nullptr,
                  .build_layer = build_layer};
const Arch kQwen2Vl{.name = "qwen2vl",
                    .keys = {},
                    .tensors = kGqaTensors,
                    .globals = kTiedGlobals,
                    .defaults = defaults,
                    .finish = nullptr,
                    .build_layer = build_layer};

}  // namespace stoker::model::qwen2
