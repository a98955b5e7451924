// What `stoker plan` knows of this machine: measured before, measured now, or guessed.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/plan_rates.h"

namespace stoker::cli {

struct PlanFigures {
  enum class Source { kGuess, kKept, kNow };
  engine::MachineRates rates{};
  Source memory = Source::kGuess;   ///< And arithmetic.
  Source kernels = Source::kGuess;  ///< Of the model's types.
  Source disk = Source::kGuess;
};
const char* source_name(PlanFigures::Source source);

struct PlanFigureOptions {
  bool measure = true;  ///< What is not known, for a second or two; memory, arithmetic and kernels are kept for later.
  std::string file{};   ///< Of the model, where it is there: its own disk counts.
};
/// kCancelled; what cannot be measured is guessed.
Result<PlanFigures> plan_figures(const engine::Engine& engine, const PlanFigureOptions& options);

}  // namespace stoker::cli
