#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::model {

/// Which expert goes when another needs its place. Keys are numbers from 0, layer by layer. The store asks it, and so
/// does the simulator that replays recorded routes (`stoker trace`).
/// Threads: one at a time.
class EvictionPolicy {
 public:
  enum class Kind {
    kRecency,  ///< The one whose last use is longest ago.
    kCounts,   ///< The one used least, where uses count half as much for each `half_life` tokens of age. Counts outlive
               ///< eviction; of equals the one whose last use is longest ago.
    /// The one least likely to be wanted by the next token: by its share of such counts, and by whether its layer
    /// wanted it last. How often that alone brings it back is measured on the way. Where it does, plain counts miss
    /// what recency hits, and the other way round; this misses neither, at any size (docs/trace.md).
    kLikelihood,
  };
  static constexpr Kind kDefault = Kind::kLikelihood;
  static constexpr double kHalfLife = 64;

  /// What kLikelihood must know; without it all keys are one layer's.
  struct Layers {
    int64_t n_experts = 0;  ///< Keys of one layer.
    int64_t n_used = 1;     ///< Per token.
  };
  EvictionPolicy(Kind kind, int64_t n_keys, double half_life = kHalfLife)
      : EvictionPolicy(kind, n_keys, half_life, {}) {}
  EvictionPolicy(Kind kind, int64_t n_keys, double half_life, Layers layers);

  Kind kind() const { return kind_; }
  /// The key is used by one token more, or by `n` of the same call.
  void use(int64_t key, int64_t n = 1);
  /// A call of so many tokens has come to an end: counts age.
  void end_call(int64_t n_tokens);
  /// The entry of `keys` to evict; -1 when there are none. Negative entries are no candidates.
  int64_t victim(std::span<const int32_t> keys) const;
  /// How often the key was used, uses weighed by their age as of now.
  double count(int64_t key) const;
  /// How likely an expert is wanted again because its layer wanted it last, popularity aside; as of now.
  double persistence() const;

 private:
  struct Layer {
    double count = 0;                 // Of all its keys.
    uint64_t call = 0, previous = 0;  // The last one that used it, and the one before; 0: none.
  };
  void begin_visit(size_t layer);
  double value(size_t key, double persistence) const;

  Kind kind_;
  Layers shape_;
  double per_token_;   // A use of the next token counts so much more than one of this.
  double weight_ = 1;  // What a use counts now; brought back to 1, with all counts, before it overflows.
  double n_rows_ = 1;  // Tokens of the last call, within reason.
  uint64_t clock_ = 0, call_ = 1;
  // Of all visits of a layer: keys wanted, those among them that the visit before had wanted, and how many of these
  // there would be if only popularity counted.
  double wanted_ = 0, repeated_ = 0, expected_ = 0;
  std::vector<double> counts_;
  std::vector<uint64_t> last_, last_call_;
  std::vector<int32_t> layer_of_;
  std::vector<Layer> layers_;
};

}  // namespace stoker::model
