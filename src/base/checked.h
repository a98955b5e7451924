#pragma once

#include <concepts>
#include <optional>
#include <utility>

namespace stoker {

/// Arithmetic on sizes that come from files: nothing when the result does not fit.
template <std::integral T>
std::optional<T> checked_add(T a, T b) {
  T out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <std::integral T>
std::optional<T> checked_mul(T a, T b) {
  T out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// `value` rounded up to a multiple of `unit` (any positive number).
template <std::integral T>
std::optional<T> checked_round_up(T value, T unit) {
  T rest = static_cast<T>(value % unit);
  return rest == 0 ? std::optional<T>(value) : checked_add<T>(value, static_cast<T>(unit - rest));
}

/// The same where both are known to be small.
template <std::integral T>
constexpr T round_up(T value, T unit) {
  return static_cast<T>((value + unit - 1) / unit * unit);
}

/// `value` as a `To`, nothing when it does not fit.
template <std::integral To, std::integral From>
std::optional<To> checked_cast(From value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

}  // namespace stoker
