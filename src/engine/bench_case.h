#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace stoker::engine {

/// What is timed: a prompt of `n` tokens, or `n` tokens one after the other, for each of some sequences at once.
struct BenchCase {
  bool generates = false;
  int64_t n = 0;
  int64_t depth = 0;    ///< Positions that every sequence holds before.
  int64_t streams = 1;  ///< Sequences in one forward pass.

  /// As the peers say it: "pp512", "tg128@d4096", "tg128 x 8".
  std::string name() const;
  int64_t tokens() const { return n * streams; }
};

/// Some tokens of one of the sequences in one forward pass.
struct BenchPiece {
  int64_t stream = 0, begin = 0, end = 0;  ///< Token indices, counted after `depth`.
  bool wants_logits = false;               ///< Of its last token.
};
using BenchCall = std::vector<BenchPiece>;

/// The forward passes of one run of the test. A prompt wants logits of each sequence's last token, as generation does;
/// its passes have at most `batch` rows. Generation takes one pass for all sequences per token.
std::vector<BenchCall> bench_calls(const BenchCase& test, int64_t batch);

/// What Engine::load must reserve for all of them, one after the other.
Engine::Needs bench_needs(std::span<const BenchCase> tests, int64_t batch);

}  // namespace stoker::engine
