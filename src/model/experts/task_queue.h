#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "model/experts/index.h"

namespace stoker::model {

/// A matrix to be read into a slot, from group `group` on.
struct ReadTask {
  int32_t slot = 0;
  size_t m = 0;
  int64_t group = 0;
};

/// First in, first out. Allocates when it is made large enough, and never after.
class TaskQueue {
 public:
  void resize(size_t n) { ring_.resize(n); }
  bool empty() const { return n_ == 0; }
  ReadTask& front() { return at(0); }
  void push(const ReadTask& task) {
    STOKER_CHECK(n_ < ring_.size());
    at(n_++) = task;
  }
  void pop() {
    first_ = (first_ + 1) % ring_.size();
    --n_;
  }
  /// Moves what is to be read into a slot behind all tasks of another queue.
  void move(int32_t slot, TaskQueue& to) {
    size_t kept = 0;
    for (size_t i = 0; i < n_; ++i) {
      if (at(i).slot == slot) {
        to.push(at(i));
      } else {
        at(kept++) = at(i);
      }
    }
    n_ = kept;
  }

 private:
  ReadTask& at(size_t i) { return ring_[(first_ + i) % ring_.size()]; }
  std::vector<ReadTask> ring_;
  size_t first_ = 0, n_ = 0;
};

}  // namespace stoker::model
