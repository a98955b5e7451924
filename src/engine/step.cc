#include "engine/step.h"

namespace stoker::engine {

Result<const float*> step(Engine& engine, model::Sequence& sequence, std::span<const int32_t> tokens, bool wants_logits,
                          const model::Control* control) {
  const auto n = static_cast<int64_t>(tokens.size());
  const model::Span span{.sequence = &sequence,
                         .tokens = tokens,
                         .position = sequence.length(),
                         .logits = wants_logits ? Range{n - 1, n} : Range{}};
  STOKER_TRY(model::Outputs outputs, engine.runner().forward({&span, 1}, nullptr, control));
  if (!outputs.failures.empty()) return Error{outputs.failures[0].code, outputs.failures[0].message};
  return wants_logits ? outputs.logits_row(0) : nullptr;
}

}  // namespace stoker::engine
