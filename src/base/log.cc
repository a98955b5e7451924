#include "base/log.h"

#include <unistd.h>

#include <atomic>

#include "base/terminal.h"

namespace stoker {
namespace {

std::atomic<LogLevel> current_level{LogLevel::kWarn};

std::string_view prefix(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "stoker: ";
    case LogLevel::kDebug:
      return "stoker: debug: ";
    default:
      return "stoker: warning: ";
  }
}

}  // namespace

void set_log_level(LogLevel level) { current_level.store(level, std::memory_order_relaxed); }

bool log_enabled(LogLevel level) { return level <= current_level.load(std::memory_order_relaxed); }

void log_line(LogLevel level, std::string_view message) {
  std::string line = str_cat(prefix(level), message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  line += '\n';
  terminal::write_above_bar(STDERR_FILENO, line);
}

}  // namespace stoker
