#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::model {

/// Which expert goes when another needs its place. Keys are numbers from 0. The store asks it, and so does the
/// simulator that replays recorded routes (`stoker trace`).
/// Threads: one at a time.
class EvictionPolicy {
 public:
  enum class Kind {
    kRecency,  ///< The one whose last use is longest ago.
    kCounts,   ///< The one used least, where uses count half as much for each `half_life` tokens of age. Counts outlive
               ///< eviction; of equals the one whose last use is longest ago.
  };
  static constexpr double kHalfLife = 128;

  EvictionPolicy(Kind kind, int64_t n_keys, double half_life = kHalfLife);
  /// What fits a cache of so many token cycles (ExpertIndex::cycle_bytes): below two of them recency flushes what it
  /// is about to need.
  static Kind kind_for(double token_cycles) { return token_cycles < 2 ? Kind::kCounts : Kind::kRecency; }

  Kind kind() const { return kind_; }
  /// The key is used by one token more, or by `n` of the same call.
  void use(int64_t key, int64_t n = 1);
  /// A call of so many tokens has come to an end: counts age.
  void end_call(int64_t n_tokens);
  /// The entry of `keys` to evict; -1 when there are none. Negative entries are no candidates.
  int64_t victim(std::span<const int32_t> keys) const;
  /// How often the key was used, uses weighed by their age as of now.
  double count(int64_t key) const;

 private:
  bool before(int64_t a, int64_t b) const;
  Kind kind_;
  double per_token_;   // A use of the next token counts so much more than one of this.
  double weight_ = 1;  // What a use counts now; brought back to 1, with all counts, before it overflows.
  uint64_t clock_ = 0;
  std::vector<double> counts_;
  std::vector<uint64_t> last_;
};

}  // namespace stoker::model
