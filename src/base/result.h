#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace stoker {

/// What the caller can do about it; `message` says where, what was wanted and what came.
enum class ErrorCode {
  kInvalidArgument,  ///< The caller asked for something that cannot be; asking again will not help.
  kNotFound,         ///< A file, key or tensor is not there.
  kUnsupported,      ///< Legal, but this build or version does not do it.
  kCorrupt,          ///< The bytes contradict themselves.
  kIo,               ///< The operating system refused or failed; the message has its reason.
  kOutOfMemory,      ///< The memory limit or the machine does not allow it; the message has the numbers.
  kOverloaded,       ///< Try again later.
  kCancelled,        ///< The caller asked to stop.
};

struct [[nodiscard]] Error {
  ErrorCode code;
  std::string message;
};

/// A value or an Error. Member names are those of std::expected, which g++ 12 has only in C++23.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  const Error& error() const& {
    STOKER_CHECK(!has_value());
    return std::get<1>(state_);
  }
  Error&& error() && {
    STOKER_CHECK(!has_value());
    return std::get<1>(std::move(state_));
  }

 private:
  T& checked() {
    STOKER_CHECK(has_value());
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

/// Success without a value: `return Ok{};`.
struct Ok {};
using Status = Result<Ok>;

#define STOKER_CONCAT_INNER(a, b) a##b
#define STOKER_CONCAT(a, b) STOKER_CONCAT_INNER(a, b)

/// STOKER_TRY(T name, expression): declares `T name` from a Result<T>, or returns its Error from this function.
#define STOKER_TRY(declaration, ...) STOKER_TRY_INNER(STOKER_CONCAT(stoker_try_, __LINE__), declaration, __VA_ARGS__)
#define STOKER_TRY_INNER(tmp, declaration, ...)        \
  auto tmp = (__VA_ARGS__);                            \
  if (!tmp.has_value()) return std::move(tmp).error(); \
  declaration = std::move(tmp).value()

/// STOKER_TRY_STATUS(expression): returns the Error of a Status from this function, if it has one.
#define STOKER_TRY_STATUS(...)                                                                       \
  do {                                                                                               \
    if (auto stoker_status = (__VA_ARGS__); !stoker_status) return std::move(stoker_status).error(); \
  } while (false)

}  // namespace stoker
