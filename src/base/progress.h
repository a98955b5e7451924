#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace stoker {

/// What a progress bar shows.
struct ProgressView {
  std::string label;
  uint64_t done = 0;
  uint64_t total = 0;     ///< 0: unknown, then there is neither a bar nor a time left.
  double per_second = 0;  ///< 0: not known yet.
  bool is_bytes = true;
};

/// "loading [######....]  60 %  1.2 of 2 GiB  1.3 GiB/s  1 s left", cut at `width` columns.
std::string progress_line(const ProgressView& view, int width);

/// A line on the terminal that tells how far a long job is; nothing when stderr is no terminal or the job is short.
/// It disappears with the object. Threads: `add` from any.
class Progress {
 public:
  struct Options {
    std::string label;
    uint64_t total = 0;    ///< 0: unknown.
    uint64_t already = 0;  ///< Done before this start (a resumed download); does not count for the rate.
    bool is_bytes = true;
    int fd = STDERR_FILENO;
    std::chrono::milliseconds first_after{300};  ///< Jobs shorter than this show nothing.
    std::chrono::milliseconds every{100};
  };
  explicit Progress(Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(uint64_t n);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  const Options options_;
  const bool visible_;
  const Clock::time_point start_;
  std::atomic<uint64_t> done_;
  std::atomic<int64_t> next_draw_;  ///< In ticks of Clock; whoever moves it on draws.
};

}  // namespace stoker
