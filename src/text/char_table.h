#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "text/utf8.h"

namespace stoker::text {

/// What a code point is to the pre-tokenizers: exactly one kind each. Numbers as in unicode_runs.inc.
enum class Kind : uint8_t { kLu, kLl, kLt, kLm, kLo, kM, kNd, kN, kP, kS, kSpace, kOther };

/// Sets of kinds. White_Space counts as kSpace only, digits that are not Nd as kN.
using Kinds = uint16_t;
constexpr Kinds bit(Kind kind) { return static_cast<Kinds>(1u << static_cast<int>(kind)); }
constexpr Kinds kUpper = bit(Kind::kLu) | bit(Kind::kLt) | bit(Kind::kLm) | bit(Kind::kLo) | bit(Kind::kM);
constexpr Kinds kLower = bit(Kind::kLl) | bit(Kind::kLm) | bit(Kind::kLo) | bit(Kind::kM);
constexpr Kinds kMark = bit(Kind::kM);
constexpr Kinds kLetter = (kUpper | kLower) & ~kMark;
constexpr Kinds kDigit = bit(Kind::kNd);
constexpr Kinds kNumber = kDigit | bit(Kind::kN);
constexpr Kinds kPunct = bit(Kind::kP);
constexpr Kinds kSymbol = bit(Kind::kS);
constexpr Kinds kSpace = bit(Kind::kSpace);
constexpr Kinds kAll = 0xFFF;

/// The kind of every code point, expanded from the runs once per process (130 KB).
class CharTable {
 public:
  static const CharTable& get();
  Kinds kinds(uint32_t code) const { return bit(static_cast<Kind>(pages_[page_of_[code >> 8] * 256u + (code & 255)])); }

 private:
  CharTable();
  uint16_t page_of_[0x1100];
  std::unique_ptr<uint8_t[]> pages_;
};

}  // namespace stoker::text
