#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "model/experts/store.h"
#include "model/plan.h"

namespace stoker::model {

/// Brings the units that stay on disk (units.h), always in the same order: while one is at work the next ones are read,
/// as many as the store has slots; after the last one of a call come the first ones of the next.
/// Threads: `wait` from any, all else from one at a time. Allocates only when it is made.
class UnitStream {
 public:
  /// A unit's steps in a plan; of parts of the output matrix, which are used after all of them: their number.
  struct Steps {
    size_t first = 0, last = 0;
  };
  /// `store` is one of WeightPlan::unit_index and must outlive this; nobody else may use it.
  UnitStream(const Plan& plan, ExpertStore& store);

  /// By unit of the store's index.
  const std::vector<Steps>& steps() const { return steps_; }

  /// A call begins that will use the units that have steps among the first `n_steps`, once each, in order, and then the
  /// parts of the output matrix, all of them so many times.
  void begin_call(size_t n_steps, size_t n_output_passes);
  /// The next unit is wanted, and stays until `release`.
  void acquire();
  void release();
  /// After the call, well or not: keeps on reading ahead only if it went well.
  void end_call(bool well);

  /// The bytes of a matrix of the unit acquired, once they are there; null when they could not be read, and `error`
  /// then says why.
  const std::byte* wait(const Matrix& w) noexcept;
  Error error() const { return front().request->error(front().lease); }
  /// Whether anything of this call could not be read.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kNone = ~size_t{0};
  /// A unit's turn in a call.
  struct Turn {
    size_t unit = kNone;
    size_t pass = 0;  ///< Through the output matrix.
  };
  struct Place {
    std::unique_ptr<ExpertRequest> request;
    Turn turn{};
    int32_t lease = -1;
  };
  Place& front() { return ring_[front_]; }
  const Place& front() const { return ring_[front_]; }
  Turn first() const { return {n_units_ > 0 ? 0 : n_of_layers_}; }
  Turn after(Turn turn) const;
  static void ask(Place& place, Turn turn);

  ExpertStore& store_;
  std::vector<Steps> steps_;
  std::vector<Place> ring_;
  size_t front_ = 0;
  size_t n_of_layers_ = 0;             // Behind these come the parts of the output matrix.
  size_t n_units_ = 0, n_passes_ = 0;  // Of the call.
  std::atomic<bool> failed_{false};
};

}  // namespace stoker::model
