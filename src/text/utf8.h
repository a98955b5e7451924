#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::text {

constexpr uint32_t kReplacement = 0xFFFD;

/// One character of `size` bytes; `valid` is false for a single byte that starts no character.
struct Utf8Char {
  uint32_t code;  ///< kReplacement when not valid.
  uint32_t size;
  bool valid;
};

/// How far `text` goes along the way to one character.
struct Utf8Prefix {
  uint32_t size;      ///< Of the character, or of the maximal invalid prefix (at least 1).
  bool complete;      ///< A whole valid character.
  bool could_extend;  ///< Not complete, but more bytes could make it so: all of `text` was used.
};

/// Strict: no overlong forms, no surrogates, nothing above U+10FFFF. `text` is not empty.
Utf8Prefix utf8_prefix(std::string_view text);

/// The character at the start of `text` (not empty). What is invalid counts one byte at a time.
Utf8Char decode_utf8(std::string_view text);

/// `code` is a Unicode scalar value.
void append_utf8(std::string& out, uint32_t code);

}  // namespace stoker::text
