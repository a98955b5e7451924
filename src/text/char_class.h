#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "text/char_table.h"

namespace stoker::text {

/// Code points `first` to `last`, both included.
struct CodeRange {
  uint32_t first, last;
};

/// A set of characters as the pre-tokenizer expressions write it, such as [^\r\n\p{L}\p{N}]. ASCII is a bitmap.
class CharClass {
 public:
  constexpr CharClass() = default;
  /// All characters of these kinds.
  explicit constexpr CharClass(Kinds kinds) : kinds_(kinds) {
    for (uint32_t c = 0; c < 128; ++c) set(c, (ascii_kinds(c) & kinds) != 0);
  }
  /// The code points of `ranges`, which are sorted and stay alive.
  explicit constexpr CharClass(std::span<const CodeRange> ranges) : added_(ranges) {
    for (const CodeRange& range : ranges)
      for (uint32_t c = range.first; c <= range.last && c < 128; ++c) set(c, true);
  }

  /// Adds, removes ASCII characters.
  constexpr CharClass with(std::string_view ascii) const { return changed(ascii, true); }
  constexpr CharClass without(std::string_view ascii) const { return changed(ascii, false); }
  constexpr CharClass with_range(char first, char last) const { return changed(first, last, true); }
  constexpr CharClass without_range(char first, char last) const { return changed(first, last, false); }
  /// Removes code points, none of them ASCII, from a class of kinds. They stay alive.
  constexpr CharClass without(std::span<const CodeRange> ranges) const {
    CharClass out = *this;
    out.removed_ = ranges;
    return out;
  }
  constexpr CharClass inverted() const {
    CharClass out = *this;
    out.inverted_ = !inverted_;
    for (uint64_t& word : out.ascii_) word = ~word;
    return out;
  }

  bool has_ascii(uint8_t byte) const { return (ascii_[byte >> 6] >> (byte & 63) & 1) != 0; }
  /// `code` is not ASCII.
  bool has_wide(uint32_t code, const CharTable& table) const {
    bool hit = (table.kinds(code) & kinds_) != 0 && (removed_.empty() || !inside(removed_, code));
    return (hit || (!added_.empty() && inside(added_, code))) != inverted_;
  }

  static constexpr Kinds ascii_kinds(uint32_t c) {
    if ((c >= 9 && c <= 13) || c == ' ') return kSpace;
    if (c >= '0' && c <= '9') return kDigit;
    if (c >= 'A' && c <= 'Z') return bit(Kind::kLu);
    if (c >= 'a' && c <= 'z') return bit(Kind::kLl);
    if (c < ' ' || c == 127) return bit(Kind::kOther);
    return std::string_view("$+<=>^`|~").find(static_cast<char>(c)) != std::string_view::npos ? kSymbol : kPunct;
  }

 private:
  static bool inside(std::span<const CodeRange> ranges, uint32_t code);
  constexpr void set(uint32_t c, bool on) {
    uint64_t mask = uint64_t{1} << (c & 63);
    ascii_[c >> 6] = on ? ascii_[c >> 6] | mask : ascii_[c >> 6] & ~mask;
  }
  constexpr CharClass changed(std::string_view ascii, bool on) const {
    CharClass out = *this;
    for (char c : ascii) out.set(static_cast<uint8_t>(c), on);
    return out;
  }
  constexpr CharClass changed(char first, char last, bool on) const {
    CharClass out = *this;
    for (int c = first; c <= last; ++c) out.set(static_cast<uint32_t>(c), on);
    return out;
  }

  uint64_t ascii_[2] = {0, 0};
  Kinds kinds_ = 0;
  bool inverted_ = false;
  std::span<const CodeRange> added_, removed_;
};

}  // namespace stoker::text
