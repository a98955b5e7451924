#include "engine/trace_replay.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/experts/slots.h"

namespace stoker::engine {

using model::EvictionPolicy;

/// The store's slots, without bytes.
class Cache {
 public:
  Cache(const Trace& trace, uint64_t budget_bytes, EvictionPolicy policy, bool optimum)
      : policy_(std::move(policy)),
        optimum_(optimum),
        slot_of_(trace.layers.size() * static_cast<size_t>(trace.n_experts), -1),
        next_(slot_of_.size(), 0) {
    std::vector<uint64_t> bytes;
    for (const Trace::Layer& layer : trace.layers) bytes.push_back(layer.slot_bytes);
    model::SlotShares shares = model::share_slots(bytes, trace.n_experts, budget_bytes);
    class_of_layer_ = std::move(shares.class_of_layer);
    for (const model::SlotClass& c : shares.classes) {
      const auto n = static_cast<size_t>(c.n_slots);
      Class& mine = classes_.emplace_back(Class{c, std::vector<int32_t>(n, -1), std::vector<int32_t>(n, -1), {}});
      for (size_t i = n; i > 0; --i) mine.free.push_back(static_cast<int32_t>(i - 1));
    }
  }

  /// All that a layer of a call wants. Returns how many were there.
  uint64_t visit(size_t layer, std::span<const Replay::Want> wants) {
    Class& c = classes_[class_of_layer_[layer]];
    for (const Replay::Want& want : wants) {
      policy_.use(want.key, want.uses);
      next_[static_cast<size_t>(want.key)] = want.next;
    }
    uint64_t n_hits = 0;
    missing_.clear();
    for (const Replay::Want& want : wants) {
      const int32_t slot = slot_of_[static_cast<size_t>(want.key)];
      if (slot < 0) {
        missing_.push_back(want.key);
        continue;
      }
      ++n_hits;
      lease(c, slot);
    }
    for (const int32_t key : missing_) place(c, key);
    release(c);
    return n_hits;
  }
  void end_call(int64_t n_tokens) { policy_.end_call(n_tokens); }
  int64_t n_slots() const {
    int64_t n = 0;
    for (const Class& c : classes_) n += c.n_slots;
    return n;
  }

 private:
  struct Class : model::SlotClass {
    std::vector<int32_t> keys, evictable;  ///< By slot; -1: none.
    std::vector<int32_t> free;
  };

  void lease(Class& c, int32_t slot) {
    c.evictable[static_cast<size_t>(slot)] = -1;
    leased_.push_back(slot);
  }

  void place(Class& c, int32_t key) {
    if (c.free.empty() && victim(c) < 0) release(c);
    int32_t slot = 0;
    if (!c.free.empty()) {
      slot = c.free.back();
      c.free.pop_back();
    } else {
      slot = static_cast<int32_t>(victim(c));
      slot_of_[static_cast<size_t>(c.keys[static_cast<size_t>(slot)])] = -1;
    }
    c.keys[static_cast<size_t>(slot)] = key;
    slot_of_[static_cast<size_t>(key)] = slot;
    lease(c, slot);
  }

  void release(Class& c) {
    for (const int32_t slot : leased_) {
      int32_t& key = c.keys[static_cast<size_t>(slot)];
      if (c.keeps) {
        c.evictable[static_cast<size_t>(slot)] = key;
      } else {
        slot_of_[static_cast<size_t>(std::exchange(key, -1))] = -1;
        c.free.push_back(slot);
      }
    }
    leased_.clear();
  }

  int64_t victim(const Class& c) const {
    if (!optimum_) return policy_.victim(c.evictable);
    int64_t best = -1;
    for (size_t i = 0; i < c.evictable.size(); ++i) {
      if (c.evictable[i] < 0) continue;
      const auto next = [&](size_t slot) { return next_[static_cast<size_t>(c.evictable[slot])]; };
      if (best < 0 || next(i) > next(static_cast<size_t>(best))) best = static_cast<int64_t>(i);
    }
    return best;
  }

  EvictionPolicy policy_;
  const bool optimum_;
  std::vector<Class> classes_;
  std::vector<size_t> class_of_layer_;
  std::vector<int32_t> slot_of_;  // By key, in its class.
  std::vector<int64_t> next_;     // By key.
  std::vector<int32_t> leased_, missing_;
};

Replay::Replay(const Trace& trace) : trace_(trace) {
  std::vector<int32_t> uses(static_cast<size_t>(trace.n_experts));
  for (size_t visit = 0; visit < trace.visits.size(); ++visit) {
    first_.push_back(wants_.size());
    std::fill(uses.begin(), uses.end(), 0);
    for (const int32_t expert : trace.routes_of(visit)) ++uses[static_cast<size_t>(expert)];
    const auto first_key = static_cast<int32_t>(trace.visits[visit].layer) * static_cast<int32_t>(trace.n_experts);
    for (size_t e = 0; e < uses.size(); ++e) {
      if (uses[e] > 0) wants_.push_back({first_key + static_cast<int32_t>(e), uses[e], 0});
    }
  }
  std::vector<int64_t> next(trace.layers.size() * uses.size(), std::numeric_limits<int64_t>::max());
  for (size_t visit = trace.visits.size(); visit-- > 0;) {
    const size_t end = visit + 1 < first_.size() ? first_[visit + 1] : wants_.size();
    for (size_t i = first_[visit]; i < end; ++i) {
      wants_[i].next = std::exchange(next[static_cast<size_t>(wants_[i].key)], static_cast<int64_t>(visit));
    }
  }
}

std::span<const Replay::Want> Replay::wants_of(size_t visit) const {
  const size_t end = visit + 1 < first_.size() ? first_[visit + 1] : wants_.size();
  return std::span(wants_).subspan(first_[visit], end - first_[visit]);
}

Replay::Outcome Replay::run(Policy policy, uint64_t budget_bytes, double half_life) const {
  using Kind = EvictionPolicy::Kind;
  const Kind kind = policy == Policy::kStore     ? EvictionPolicy::kDefault
                    : policy == Policy::kRecency ? Kind::kRecency
                                                 : Kind::kCounts;
  if (policy == Policy::kForever) half_life = std::numeric_limits<double>::infinity();
  const auto n_keys = static_cast<int64_t>(trace_.layers.size()) * trace_.n_experts;
  Cache cache(trace_, budget_bytes, EvictionPolicy(kind, n_keys, half_life, {trace_.n_experts, trace_.n_used}),
              policy == Policy::kOptimum);
  Outcome out;
  for (size_t call = 0; call < trace_.calls.size(); ++call) {
    Counts counts{.tokens = trace_.calls[call].n_tokens};
    for (size_t visit = trace_.calls[call].first; visit < trace_.end_of_call(call); ++visit) {
      const size_t layer = trace_.visits[visit].layer;
      const auto wants = wants_of(visit);
      const uint64_t n_hits = cache.visit(layer, wants);
      counts.requests += wants.size();
      counts.hits += n_hits;
      counts.bytes_read += (wants.size() - n_hits) * trace_.layers[layer].read_bytes;
    }
    cache.end_call(counts.tokens);
    const auto add = [&](Counts& sum) {
      sum.tokens += counts.tokens, sum.requests += counts.requests;
      sum.hits += counts.hits, sum.bytes_read += counts.bytes_read;
    };
    add(out.all);
    if (counts.tokens == 1) add(out.decode);
  }
  out.n_slots = cache.n_slots();
  return out;
}

}  // namespace stoker::engine
