#include "base/progress.h"

#include <algorithm>
#include <cmath>

#include "base/memory_limit.h"
#include "base/str_cat.h"
#include "base/terminal.h"

namespace stoker {
namespace {

constexpr int kBarWidth = 24;

std::string amount(uint64_t n, bool is_bytes) { return is_bytes ? format_bytes(n) : str_cat(n); }

std::string rate(double per_second, bool is_bytes) {
  if (is_bytes) return str_cat(format_bytes(static_cast<uint64_t>(per_second)), "/s");
  // Three digits are enough: 0.25/s, 12.3/s, 1234/s.
  const double step = per_second < 10 ? 100 : per_second < 100 ? 10 : 1;
  return str_cat(std::round(per_second * step) / step, "/s");
}

std::string duration(double seconds) {
  const auto s = static_cast<uint64_t>(std::min(std::ceil(seconds), 359999.0));
  if (s < 60) return str_cat(s, " s");
  if (s < 3600) return str_cat(s / 60, " min ", s % 60, " s");
  return str_cat(s / 3600, " h ", s / 60 % 60, " min");
}

std::string bar(uint64_t done, uint64_t total) {
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const int filled = static_cast<int>(share * kBarWidth);
  const int percent = static_cast<int>(share * 100);
  return str_cat(" [", std::string(static_cast<size_t>(filled), '#'),
                 std::string(static_cast<size_t>(kBarWidth - filled), '.'), "] ", percent < 100 ? " " : "",
                 percent < 10 ? " " : "", percent, " %");
}

}  // namespace

std::string progress_line(const ProgressView& view, int width) {
  const uint64_t done = view.total == 0 ? view.done : std::min(view.done, view.total);
  std::string line = view.label;
  if (view.total > 0) line += bar(done, view.total);
  line += str_cat("  ", amount(done, view.is_bytes));
  if (view.total > 0) line += str_cat(" of ", amount(view.total, view.is_bytes));
  if (view.per_second > 0) {
    line += str_cat("  ", rate(view.per_second, view.is_bytes));
    if (view.total > 0)
      line += str_cat("  ", duration(static_cast<double>(view.total - done) / view.per_second), " left");
  }
  // One column stays free: terminals wrap when the last one is written.
  if (static_cast<int>(line.size()) >= width) line.resize(static_cast<size_t>(std::max(width - 1, 0)));
  return line;
}

Progress::Progress(Options options)
    : options_(std::move(options)),
      visible_(terminal::is_terminal(options_.fd)),
      start_(Clock::now()),
      done_(options_.already),
      next_draw_((start_ + options_.first_after).time_since_epoch().count()) {}

Progress::~Progress() {
  if (visible_) terminal::draw_bar(options_.fd, "");
}

void Progress::add(uint64_t n) {
  done_.fetch_add(n, std::memory_order_relaxed);
  if (!visible_) return;
  const Clock::time_point now = Clock::now();
  int64_t due = next_draw_.load(std::memory_order_relaxed);
  const int64_t next = (now + options_.every).time_since_epoch().count();
  if (now.time_since_epoch().count() < due || !next_draw_.compare_exchange_strong(due, next)) return;
  draw(now);
}

void Progress::draw(Clock::time_point now) {
  const uint64_t done = done_.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double here = static_cast<double>(done - options_.already);
  const ProgressView view{options_.label, done, options_.total, seconds > 0 ? here / seconds : 0, options_.is_bytes};
  terminal::draw_bar(options_.fd, progress_line(view, terminal::width(options_.fd)));
}

}  // namespace stoker
