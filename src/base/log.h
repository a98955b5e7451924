#pragma once

#include <string_view>

#include "base/str_cat.h"

namespace stoker {

/// What goes to stderr: each level includes those before it.
enum class LogLevel { kQuiet, kWarn, kInfo, kDebug };

/// Set once by main; kWarn before.
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);

/// Writes "stoker: warning: MESSAGE" as one line in one piece, control characters as blanks. Threads: any.
/// Not for use inside Pool::run.
void log_line(LogLevel level, std::string_view message);

/// The arguments of str_cat; not put together when nobody reads them.
template <class... Args>
void log_warn(const Args&... args) {
  if (log_enabled(LogLevel::kWarn)) log_line(LogLevel::kWarn, str_cat(args...));
}
template <class... Args>
void log_info(const Args&... args) {
  if (log_enabled(LogLevel::kInfo)) log_line(LogLevel::kInfo, str_cat(args...));
}
template <class... Args>
void log_debug(const Args&... args) {
  if (log_enabled(LogLevel::kDebug)) log_line(LogLevel::kDebug, str_cat(args...));
}

}  // namespace stoker
