#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::text {

// Byte-level vocabularies write each byte as one printable character: 21-7E, A1-AC and AE-FF as the code point of the
// same number, the other 68 bytes, in order, as U+0100 to U+0143.

/// The character that stands for `byte`.
uint32_t char_of_byte(uint8_t byte);
/// The byte that `code` stands for, -1 if none.
int byte_of_char(uint32_t code);

/// Appends the bytes that the characters of `text` stand for. What stands for none is appended as it is; then the
/// answer is false.
bool append_unmapped(std::string& out, std::string_view text);

}  // namespace stoker::text
