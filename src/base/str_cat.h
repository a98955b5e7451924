#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace stoker {
namespace detail {

inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, const char* text) { out += text; }
inline void append(std::string& out, const std::string& text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
inline void append(std::string& out, bool value) { out += value ? "true" : "false"; }
template <class T>
requires(std::integral<T> || std::floating_point<T>) void append(std::string& out, T value) {
  char buffer[64];  // The shortest form of a double that reads back equal has at most 24 characters.
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end.ptr);
}

}  // namespace detail

/// The arguments one after the other: strings as they are, numbers in their shortest exact form.
template <class... Args>
std::string str_cat(const Args&... args) {
  std::string out;
  (detail::append(out, args), ...);
  return out;
}

/// `text` in single quotes, cut at `max` bytes, every byte outside printable ASCII as \xNN: safe on a terminal.
std::string quoted(std::string_view text, size_t max = 80);
// Exact overloads, so that std::quoted, found through the argument's namespace, is never the better match.
inline std::string quoted(const std::string& text, size_t max = 80) { return quoted(std::string_view(text), max); }
inline std::string quoted(const char* text, size_t max = 80) { return quoted(std::string_view(text), max); }

}  // namespace stoker
