#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace stoker::text {

/// Which tokens their own text is encoded as, learnt as texts come by: one look-up then takes the place of all merges.
/// One byte per token; the answer never depends on who asked before. Threads: from any thread.
class WholePieces {
 public:
  enum State : uint8_t { kUnknown, kYes, kNo };

  explicit WholePieces(size_t n_tokens) : states_(std::make_unique<std::atomic<uint8_t>[]>(n_tokens)) {}
  State state(int32_t id) const {
    return static_cast<State>(states_[static_cast<size_t>(id)].load(std::memory_order_relaxed));
  }
  void learn(int32_t id, bool whole) {
    states_[static_cast<size_t>(id)].store(whole ? kYes : kNo, std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<uint8_t>[]> states_;
};

}  // namespace stoker::text
