#pragma once

#include <cstdint>
#include <string>

namespace stoker::text {

/// Control, format and private characters, but for tab and line ends.
bool is_control(uint32_t code);
/// Ideographs, which BERT takes one by one; not kana, not hangul.
bool is_ideograph(uint32_t code);
/// Appends the character decomposed (NFD), without marks that stand above or below another one (Mn).
void append_without_marks(std::u32string& out, uint32_t code);
/// Appends its small letter, or itself.
void append_lower(std::u32string& out, uint32_t code);

}  // namespace stoker::text
