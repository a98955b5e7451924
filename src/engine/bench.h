#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace stoker::engine {

/// One line of a benchmark: tokens per second over the repetitions.
struct BenchRow {
  std::string test;  ///< "pp512": a prompt of 512 tokens; "tg128": 128 tokens one after the other.
  double median = 0, min = 0, max = 0;
  int repetitions = 0;
};

struct BenchOptions {
  int64_t prompt = 512;    ///< 0: no such row.
  int64_t generate = 128;  ///< 0: no such row.
  int repetitions = 5;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void()> on_step{};  ///< After each repetition.
};

/// Times a loaded engine: each test once to warm up, then `repetitions` times, from an empty sequence each.
/// kCancelled. kCorrupt: a value that is not finite.
Result<std::vector<BenchRow>> bench(Engine& engine, const BenchOptions& options);

}  // namespace stoker::engine
