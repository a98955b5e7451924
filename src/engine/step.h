#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "engine/engine.h"

namespace stoker::engine {

/// Forwards some tokens of one sequence in one call; the logits of the last one where they are wanted, else null.
/// Valid until the next call. kCorrupt: a value that is not finite; kIo: an expert that cannot be read; others
/// as Runner::forward.
Result<const float*> step(Engine& engine, model::Sequence& sequence, std::span<const int32_t> tokens, bool wants_logits,
                          const model::Control* control = nullptr);

}  // namespace stoker::engine
