#include "text/char_table.h"

#include <gtest/gtest.h>

#include "text/char_class.h"

namespace stoker::text {
namespace {

// Known members of each kind, Unicode 15.1.
TEST(CharTable, Kinds) {
  const CharTable& table = CharTable::get();
  struct Case {
    uint32_t code;
    Kinds kinds;
  };
  const Case cases[] = {{'A', bit(Kind::kLu)},
                        {0x1E9E, bit(Kind::kLu)},
                        {'z', bit(Kind::kLl)},
                        {0xDF, bit(Kind::kLl)},
                        {0x1C5, bit(Kind::kLt)},
                        {0x2B0, bit(Kind::kLm)},
                        {0x30FC, bit(Kind::kLm)},
                        {0x4E00, bit(Kind::kLo)},
                        {0x9FFF, bit(Kind::kLo)},
                        {0x1F600, kSymbol},
                        {0x301, kMark},
                        {0x20DD, kMark},
                        {0x663, kDigit},
                        {0x2167, bit(Kind::kN)},
                        {0xBD, bit(Kind::kN)},
                        {'-', kPunct},
                        {0x2014, kPunct},
                        {0xFF01, kPunct},
                        {'$', kSymbol},
                        {0xA0, kSpace},
                        {0x3000, kSpace},
                        {0x85, kSpace},
                        {0x200B, bit(Kind::kOther)},
                        {0xE000, bit(Kind::kOther)},
                        {0x10FFFF, bit(Kind::kOther)},
                        {0x2EBF0, bit(Kind::kLo)},
                        {0x1C89, bit(Kind::kOther)},
                        {0xFFFD, kSymbol}};
  for (const Case& c : cases) EXPECT_EQ(table.kinds(c.code), c.kinds) << std::hex << c.code;
}

// The classes know ASCII without the table.
TEST(CharTable, AsciiAgrees) {
  for (uint32_t c = 0; c < 128; ++c) EXPECT_EQ(CharTable::get().kinds(c), CharClass::ascii_kinds(c)) << c;
}

TEST(CharClass, SetsOfKindsCharactersAndRanges) {
  static constexpr CodeRange kRanges[] = {{0x40, 0x42}, {0x400, 0x4FF}};
  const CharTable& table = CharTable::get();
  CharClass letters(kLetter);
  EXPECT_TRUE(letters.has_ascii('a') && letters.has_wide(0x416, table) && letters.has_wide(0x4E00, table));
  EXPECT_FALSE(letters.has_ascii('1') || letters.has_wide(0x301, table));
  CharClass others = letters.inverted();
  EXPECT_TRUE(others.has_ascii('1') && others.has_wide(0x301, table));
  EXPECT_FALSE(others.has_ascii('a') || others.has_wide(0x416, table));
  CharClass ranges{std::span<const CodeRange>(kRanges)};
  EXPECT_TRUE(ranges.has_ascii('A') && ranges.has_wide(0x400, table) && ranges.has_wide(0x4FF, table));
  EXPECT_FALSE(ranges.has_ascii('C') || ranges.has_wide(0x3FF, table) || ranges.has_wide(0x500, table));
  CharClass removed =
      CharClass(kLetter).without(std::span<const CodeRange>(kRanges).subspan(1)).without("ab").with("-");
  EXPECT_TRUE(removed.has_ascii('c') && removed.has_ascii('-') && removed.has_wide(0x4E00, table));
  EXPECT_FALSE(removed.has_ascii('a') || removed.has_wide(0x416, table));
}

}  // namespace
}  // namespace stoker::text
