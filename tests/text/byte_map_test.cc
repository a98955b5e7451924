#include "text/byte_map.h"

#include <gtest/gtest.h>

#include <set>

#include "text/utf8.h"

namespace stoker::text {
namespace {

TEST(ByteMap, IsABijection) {
  std::set<uint32_t> codes;
  for (int byte = 0; byte < 256; ++byte) {
    uint32_t code = char_of_byte(static_cast<uint8_t>(byte));
    codes.insert(code);
    EXPECT_EQ(byte_of_char(code), byte);
  }
  EXPECT_EQ(codes.size(), 256u);
  EXPECT_EQ(char_of_byte(' '), 0x120u);
  EXPECT_EQ(char_of_byte('\n'), 0x10Au);
  EXPECT_EQ(char_of_byte('\t'), 0x109u);
  EXPECT_EQ(char_of_byte(0x7F), 0x121u);
  EXPECT_EQ(char_of_byte(0xA0), 0x142u);
  EXPECT_EQ(char_of_byte(0xAD), 0x143u);
  EXPECT_EQ(char_of_byte('~'), '~');
  EXPECT_EQ(char_of_byte(0xFF), 0xFFu);
}

TEST(ByteMap, OtherCharactersStandForNoByte) {
  for (uint32_t code : {0x20u, 0x0Au, 0x7Fu, 0xA0u, 0xADu, 0x144u, 0x2581u, 0x10FFFFu})
    EXPECT_EQ(byte_of_char(code), -1);
}

TEST(ByteMap, Unmaps) {
  std::string out;
  EXPECT_TRUE(append_unmapped(out, "ĠhiĊÃ©"));
  EXPECT_EQ(out, " hi\n\xC3\xA9");
  out.clear();
  EXPECT_FALSE(append_unmapped(out, "a b▁Ġ\xFF"));  // a space, U+2581 and an invalid byte stay what they are
  EXPECT_EQ(out, "a b▁ \xFF");
  out.clear();
  EXPECT_FALSE(append_unmapped(out, "\xC4"));
  EXPECT_EQ(out, "\xC4");
}

}  // namespace
}  // namespace stoker::text
