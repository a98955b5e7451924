// The positions with the largest of many scores.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace stoker::model {

/// The k largest scores win; of equal ones (both zeros are equal) the lower positions. What wins is a set, whatever the
/// pieces that the scores come in. Lives in memory of others: `bytes` of it, 8-byte aligned.
class TopPositions {
 public:
  static int64_t bytes(int64_t k) { return 4 * k * static_cast<int64_t>(sizeof(uint64_t)); }
  TopPositions(int64_t k, std::byte* memory) : k_(k), keys_(reinterpret_cast<uint64_t*>(memory)) {}

  /// Scores of `n` positions from `first` on, which come in ascending order. `state` is what was left by the call
  /// before,
  /// {} at first.
  struct State {
    int64_t n = 0;       ///< Candidates, ascending by position; at most 2 k.
    uint64_t least = 0;  ///< What a further one must exceed.
  };
  void add(State& state, const float* scores, int64_t n, int64_t first) {
    constexpr int64_t kBlock = 16;
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t end = std::min(n, i + kBlock);
      // Most blocks have nothing to offer: a look at their largest score tells.
      if (end - i == kBlock && key_of(largest(scores + i), 0) < state.least) continue;
      for (int64_t j = i; j < end; ++j) {
        const uint64_t key = key_of(scores[j], first + j);
        if (key <= state.least) continue;
        keys_[state.n++] = key;
        if (state.n == 2 * k_) shrink(state);
      }
    }
  }

  /// The winners, ascending: all of them if there were no more than k. Returns how many.
  int64_t finish(State& state, int32_t* positions) {
    if (state.n > k_) shrink(state);
    for (int64_t i = 0; i < state.n; ++i) positions[i] = static_cast<int32_t>(~static_cast<uint32_t>(keys_[i]));
    return state.n;
  }

 private:
  /// Greater for greater scores, and for lower positions of equal ones. NaN is just another number.
  static uint64_t key_of(float score, int64_t position) {
    const auto bits = std::bit_cast<uint32_t>(score + 0.0F);  // -0 becomes 0
    const uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
    return static_cast<uint64_t>(ordered) << 32 | static_cast<uint32_t>(~static_cast<uint32_t>(position));
  }
  static float largest(const float* scores) {
    float lanes[4] = {scores[0], scores[1], scores[2], scores[3]};
    for (int i = 4; i < 16; i += 4) {
      for (int lane = 0; lane < 4; ++lane)
        lanes[lane] = lanes[lane] < scores[i + lane] ? scores[i + lane] : lanes[lane];
    }
    return std::max(std::max(lanes[0], lanes[1]), std::max(lanes[2], lanes[3]));
  }

  /// To the best k, which stay in their order.
  void shrink(State& state) {
    uint64_t* const sorted = keys_ + 2 * k_;
    std::copy_n(keys_, state.n, sorted);
    std::nth_element(sorted, sorted + k_ - 1, sorted + state.n, std::greater<>());
    const uint64_t least = sorted[k_ - 1];
    int64_t kept = 0;
    for (int64_t i = 0; i < state.n; ++i) {
      keys_[kept] = keys_[i];
      kept += keys_[i] >= least;
    }
    state = {kept, least};
  }

  int64_t k_;
  uint64_t* keys_;
};

}  // namespace stoker::model
