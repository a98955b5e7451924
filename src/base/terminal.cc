#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "base/mutex.h"
#include "base/str_cat.h"

namespace stoker::terminal {
namespace {

constexpr std::string_view kWipe = "\r\x1b[K";  // To the first column, erase to the end of the line.

Mutex mu;
int bar_fd GUARDED_BY(mu) = -1;  ///< Where a bar is on the screen; -1: nowhere.

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

bool is_terminal(int fd) { return isatty(fd) == 1; }

int width(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void write_above_bar(int fd, std::string_view text) {
  MutexLock lock(mu);
  write_all(fd, bar_fd == fd ? str_cat(kWipe, text) : std::string(text));
  if (bar_fd == fd) bar_fd = -1;
}

void draw_bar(int fd, std::string_view bar) {
  MutexLock lock(mu);
  if (bar.empty() && bar_fd != fd) return;
  write_all(fd, str_cat(kWipe, bar));
  bar_fd = bar.empty() ? -1 : fd;
}

}  // namespace stoker::terminal
