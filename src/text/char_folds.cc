#include "text/char_folds.h"

#include <algorithm>
#include <iterator>

#include "text/char_class.h"

namespace stoker::text {
namespace {

struct LowerRange {
  uint32_t first, last, stride;
  int32_t difference;
};
struct Base {
  uint32_t code, base;
};
struct LongBase {
  uint32_t code, bases[3];
};

#include "text/unicode_folds.inc"

constexpr CodeRange kIdeographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                                     {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};

/// The last entry whose `first` is not above `code`; null: there is none.
template <class T, size_t N, class First>
const T* at_or_below(const T (&sorted)[N], uint32_t code, First first) {
  const T* after = std::upper_bound(std::begin(sorted), std::end(sorted), code,
                                    [&](uint32_t c, const T& entry) { return c < first(entry); });
  return after == sorted ? nullptr : after - 1;
}

template <size_t N>
bool inside(const CodeRange (&ranges)[N], uint32_t code) {
  const CodeRange* range = at_or_below(ranges, code, [](const CodeRange& r) { return r.first; });
  return range != nullptr && code <= range->last;
}

/// Syllables of Hangul are leading consonant, vowel and maybe trailing consonant.
bool append_syllable(std::u32string& out, uint32_t code) {
  constexpr uint32_t kFirst = 0xAC00, kLast = 0xD7A3, kVowels = 21, kTrails = 28;
  if (code < kFirst || code > kLast) return false;
  const uint32_t index = code - kFirst, trail = index % kTrails;
  out += static_cast<char32_t>(0x1100 + index / (kVowels * kTrails));
  out += static_cast<char32_t>(0x1161 + index / kTrails % kVowels);
  if (trail != 0) out += static_cast<char32_t>(0x11A7 + trail);
  return true;
}

}  // namespace

bool is_control(uint32_t code) {
  if (code < 0x80) return (code < ' ' || code == 0x7F) && code != '\t' && code != '\n' && code != '\r';
  return inside(kControls, code);
}

bool is_ideograph(uint32_t code) { return code >= 0x3400 && inside(kIdeographs, code); }

void append_without_marks(std::u32string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char32_t>(code);
    return;
  }
  if (inside(kMarks, code) || append_syllable(out, code)) return;
  const Base* base = at_or_below(kBases, code, [](const Base& b) { return b.code; });
  if (base != nullptr && base->code == code) {
    out += static_cast<char32_t>(base->base);
    return;
  }
  const LongBase* bases = at_or_below(kLongBases, code, [](const LongBase& b) { return b.code; });
  if (bases == nullptr || bases->code != code) {
    out += static_cast<char32_t>(code);
    return;
  }
  for (const uint32_t each : bases->bases)
    if (each != 0) out += static_cast<char32_t>(each);
}

void append_lower(std::u32string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char32_t>(code >= 'A' && code <= 'Z' ? code + 32 : code);
    return;
  }
  constexpr uint32_t kDottedI = 0x130;  // The only one with a small letter of two characters.
  if (code == kDottedI) {
    out += U"i\u0307";
    return;
  }
  const LowerRange* range = at_or_below(kSmallLetters, code, [](const LowerRange& r) { return r.first; });
  const bool upper = range != nullptr && code <= range->last && (code - range->first) % range->stride == 0;
  out += static_cast<char32_t>(upper ? static_cast<int32_t>(code) + range->difference : static_cast<int32_t>(code));
}

}  // namespace stoker::text
