#pragma once

#include <cstdint>
#include <vector>

#include "engine/trace.h"
#include "model/experts/policy.h"

namespace stoker::engine {

/// What the expert store would have done with the requests of a trace, reads at once and nothing read ahead: the same
/// slots, the same policy's code. Exact where the store has room for all that a layer of a call wants; where it has
/// not, the store's order depends on the disk, and here all experts of a wave go before the next.
class Replay {
 public:
  explicit Replay(const Trace& trace);

  enum class Policy {
    kStore,    ///< The store's own (EvictionPolicy::kDefault).
    kRecency,  ///< EvictionPolicy's.
    kCounts,   ///< Use counts, with the half-life given.
    kForever,  ///< Counts that do not age: LFU.
    kOptimum,  ///< Bélády's: the one whose next use is farthest. Nothing that must keep what it reads hits more.
  };
  struct Counts {
    int64_t tokens = 0;
    uint64_t requests = 0, hits = 0, bytes_read = 0;
    double hit_rate() const { return requests ? static_cast<double>(hits) / static_cast<double>(requests) : 0; }
    double bytes_per_token() const {
      return tokens ? static_cast<double>(bytes_read) / static_cast<double>(tokens) : 0;
    }
  };
  struct Outcome {
    int64_t n_slots = 0;
    Counts all, decode;  ///< Of all calls; of those with one token.
  };
  Outcome run(Policy policy, uint64_t budget_bytes, double half_life = model::EvictionPolicy::kHalfLife) const;

 private:
  friend class Cache;
  struct Want {
    int32_t key = 0, uses = 0;
    int64_t next = 0;  ///< The visit that wants it again; or more than there are.
  };
  std::span<const Want> wants_of(size_t visit) const;
  const Trace& trace_;
  std::vector<Want> wants_;
  std::vector<size_t> first_;  // Of each visit.
};

}  // namespace stoker::engine
