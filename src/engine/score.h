#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "engine/digest.h"
#include "engine/engine.h"

namespace stoker::engine {

struct ScoreOptions {
  int64_t context = 0;  ///< Longer texts are read in consecutive windows of so many tokens, each from an empty state.
  int64_t top = 0;      ///< So many best tokens per position.
  Digest* digest = nullptr;      ///< Takes every row, by position.
  OutputFile* logits = nullptr;  ///< Takes every row as raw little-endian f32.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t done, int64_t all)> on_progress{};
};

struct Scores {
  /// Entry i: natural logarithm of the probability of token i + 1 after tokens 0 ... i, in double; NaN where a window
  /// begins.
  std::vector<double> logprobs;
  /// Per position, the best tokens with their log-probabilities.
  std::vector<std::vector<std::pair<int32_t, double>>> top;
  double perplexity = 0;  ///< exp of the mean negative log-probability.
  double seconds = 0;
};

/// Bytes of the Scores of a text of `n_tokens`; for the ledger.
uint64_t score_bytes(int64_t n_tokens, int64_t top);

/// Scores a text. kInvalidArgument: fewer than two tokens, or one outside the vocabulary. kCorrupt: not finite.
/// kCancelled.
Result<Scores> score(Engine& engine, std::span<const int32_t> tokens, const ScoreOptions& options);

}  // namespace stoker::engine
