#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace stoker {

/// Has the system put memory behind these bytes, where there is none yet, from the memory node that the thread runs
/// on. They are left as they are, also if their owner writes them meanwhile.
void touch_pages(std::span<std::byte> bytes);

/// Has the system put memory behind a buffer before it is needed: the first write to a page costs a fault and its
/// clearing, a virtual machine often the same once more in its host (0.5 GB/s were seen there). Threads of the lowest
/// priority do it, so that nothing is held up which has work to do. Bytes are left as they are: whoever owns the buffer
/// may use it meanwhile.
class Toucher {
 public:
  Toucher() = default;
  Toucher(const Toucher&) = delete;
  Toucher& operator=(const Toucher&) = delete;
  ~Toucher();

  /// Once. From the first byte to the last.
  void start(std::span<std::byte> bytes, int n_threads);
  /// Until all of it has been touched.
  void wait();

 private:
  void work();
  std::span<std::byte> bytes_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace stoker
