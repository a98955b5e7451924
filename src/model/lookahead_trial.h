#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker::model {

/// When what the next layer will want is guessed (Lookahead); kTry: while LookaheadTrial finds that it pays.
enum class LookaheadUse { kOff, kOn, kTry };

/// Finds out on the spot whether guessing pays: calls of few tokens do so and do not in turn, the median times decide
/// for many calls to come, and then again. Chooses what is read when, and no result. Threads: one at a time.
class LookaheadTrial {
 public:
  static constexpr size_t kRounds = 9;    ///< Calls of either kind in a trial.
  static constexpr int64_t kCalls = 256;  ///< That its outcome holds for.
  static constexpr double kWorth = 0.97;  ///< Guessing wins with at most this share of the time without.

  /// Whether a call of `n_rows` tokens, which starts now, guesses. A trial is among calls of as many tokens.
  bool begin(int64_t n_rows);
  /// It is over, and went well. Without this call it counts for nothing.
  void end();
  /// The same, of a call that took so long.
  void end(uint64_t ns);

 private:
  bool counts_ = false;  ///< The call in flight has few tokens.
  int64_t n_rows_ = 0;
  uint64_t started_ns_ = 0;
  size_t n_tried_ = 0;  ///< Calls of the trial so far.
  int64_t n_left_ = 0;  ///< Calls until the next one.
  bool guess_ = false;  ///< Its outcome.
  std::array<std::array<uint64_t, kRounds>, 2> times_{};
};

}  // namespace stoker::model
