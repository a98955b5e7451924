#pragma once

namespace stoker {

/// Prints the failed condition with its place to stderr and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace stoker

/// States what only a bug in Stoker can break. What a file or a request can trip is an Error instead.
#define STOKER_CHECK(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::stoker::check_failed(#condition, __FILE__, __LINE__))

/// STOKER_CHECK for inner loops: only in debug builds.
#ifdef NDEBUG
#define STOKER_DCHECK(condition) static_cast<void>(0)
#else
#define STOKER_DCHECK(condition) STOKER_CHECK(condition)
#endif
