#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "engine/engine.h"
#include "engine/plan_rates.h"

namespace stoker::engine {

/// What a run is to do.
struct PlanRun {
  static constexpr int64_t kPrompt = 512;
  int64_t parallel = 1;  ///< Sequences, each with a context of its own, decoded together.
  int64_t context = 0;   ///< Positions of each.
  int64_t prompt = 0;    ///< Tokens of a prompt: kPrompt, or the context when less.
  Engine::Needs needs{};

  /// With the context that EngineOptions ask for, or that fits. kOutOfMemory: as Engine::context.
  static Result<PlanRun> of(const Engine& engine, int64_t parallel);
};

/// Tokens per second of all sequences together.
struct PlanSpeed {
  double tokens = 0;
  double least_tokens = 0;  ///< What the bound alone would allow.
  Bound bound{};
  PassTime time{};  ///< Of the pass, or of all passes of a prompt.
};

/// A run before anything of its weights is read: what goes where, and how fast it will be.
struct PlanReport {
  uint64_t limit = 0;
  Placement placement{};
  std::vector<Ledger::Line> lines{};  ///< What the engine's ledger would hold.
  uint64_t bytes = 0;                 ///< Of all lines.

  // Where experts are streamed:
  int64_t n_slots = 0, n_experts = 0;  ///< Of all layers.
  uint64_t expert_bytes = 0;           ///< Of all experts.
  double token_cycles = 0;             ///< How often the experts of a token fit into the cache.
  double hit_rate = 1;                 ///< While decoding, if routing is even.
  uint64_t streamed_bytes = 0;         ///< Of the file, that stay there.

  // Where layers are streamed:
  size_t n_units = 0;       ///< What each pass reads: parts of layers, and of the output matrix.
  uint64_t unit_bytes = 0;  ///< Of the file.
  /// Of one kind, those that are streamed and all there are.
  struct Units {
    std::vector<int64_t> layers{};  ///< Of the output matrix: the parts' numbers.
    int64_t n_all = 0;
  };
  Units attention{}, feed_forward{}, output{};

  struct PerToken {
    double dense = 0;           ///< Weights but experts, with a row of the embedding.
    double experts_memory = 0;  ///< Experts that are found in the cache, or resident.
    double experts_disk = 0;    ///< Bytes of the file.
    double layers_disk = 0;     ///< The same, of parts of layers.
    double kv = 0;              ///< Once the context is full.
  };
  PerToken per_token{};     ///< Of a token decoded, all sequences at once.
  PlanSpeed prefill{};      ///< Of the first prompt after the start: no expert is there yet.
  PlanSpeed decode{};       ///< Right after the prompt, with the cache full.
  PlanSpeed decode_full{};  ///< At the end of the context.
};

/// kOutOfMemory: as Engine::load would refuse.
Result<PlanReport> plan_report(const Engine& engine, const PlanRun& run, const MachineRates& rates);

/// The same for other limits, the smallest that works first, that of everything resident last; leaves the engine with
/// the limit that it had.
std::vector<PlanReport> plan_limits(Engine& engine, const PlanRun& run, const MachineRates& rates);

/// The least limit, in whole MiB, with which everything is resident.
uint64_t resident_limit(const Engine& engine, const PlanRun& run);

/// The types of which products the run is made: the kernels that matter.
std::vector<gguf::TensorType> plan_types(const Engine& engine);

}  // namespace stoker::engine
