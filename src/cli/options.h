// CLI11 and what its options are made of here. Apart from common.h, since it takes seconds to compile.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

#include "base/str_cat.h"
#include "cli/common.h"

namespace stoker::cli {

/// More than any context, so that the number is judged beside the context.
inline constexpr int64_t kMostTokens = int64_t{1} << 40;

/// A decimal whole number from `min` to `max`; anything else is a usage error of the option `name` that says so.
/// CLI11 by itself takes the nearest number that fits, and a leading zero for octal.
template <class T>
T parse_integer(const std::string& name, const std::string& text, T min, T max) {
  const char* end = text.data() + text.size();
  T parsed{};
  const auto [at, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc() || at != end || parsed < min || parsed > max) {
    throw CLI::ValidationError(str_cat(name, " is ", quoted(text), ", wanted a whole number from ", min, " to ", max));
  }
  return parsed;
}

/// An option that takes such a number.
template <class T>
CLI::Option* add_integer(CLI::App& app, const std::string& names, T& value, T min, T max, const std::string& what) {
  const std::string name = names.substr(names.rfind("--"));
  return app
      .add_option_function<std::string>(
          names, [&value, min, max, name](const std::string& text) { value = parse_integer(name, text, min, max); },
          what)
      ->type_name("N");
}

}  // namespace stoker::cli
