#include <gtest/gtest.h>

#include "base/memory_limit.h"

namespace stoker {
namespace {

constexpr uint64_t kMiB = 1u << 20;

TEST(ParseSize, PowersOf1024) {
  EXPECT_EQ(*parse_size("1K"), 1024u);
  EXPECT_EQ(*parse_size("512M"), 512 * kMiB);
  EXPECT_EQ(*parse_size("6G"), 6144 * kMiB);
  EXPECT_EQ(*parse_size("2T"), kMiB * kMiB * 2);
  EXPECT_EQ(*parse_size("1048576K"), 1024 * kMiB);
  EXPECT_EQ(*parse_size("007M"), 7 * kMiB);
  EXPECT_EQ(*parse_size("0K"), 0u);
  EXPECT_EQ(*parse_size("16777215T"), uint64_t{16777215} << 40);
}

TEST(ParseSize, EachMistakeHasItsOwnMessage) {
  struct Case {
    const char* text;
    const char* why;
  };
  const Case cases[] = {
      {"", "is empty"},
      {"6", "has no suffix"},
      {"0", "has no suffix"},
      {"99999999999999999999999999", "has no suffix"},
      {"-6G", "has a sign"},
      {"+6G", "has a sign"},
      {"1.5G", "has a fraction"},
      {"1,5G", "has a fraction"},
      {".5G", "has a fraction"},
      {"16777216T", "is out of range"},
      {"18446744073709551615K", "is out of range"},
      {"18446744073709551616K", "has a number too large for 64 bits"},
      {"99999999999999999999999999K", "has a number too large for 64 bits"},
      {"G", "has no number"},
      {"6GB", "goes on after its suffix"},
      {"6GiB", "goes on after its suffix"},
      {"6G ", "goes on after its suffix"},
      {"6 G", "has a character that is neither"},
      {" 6G", "has a character that is neither"},
      {"6g", "has a character that is neither"},
      {"0x6G", "has a character that is neither"},
      {"1e3M", "has a character that is neither"},
      {"\xd9\xa6G", "'\\xd9\\xa6G' has a character that is neither"},  // ARABIC-INDIC DIGIT SIX
      {"\xffG", "is no UTF-8"},
      {"6G\xd9", "is no UTF-8"},
      {"6\x80G", "is no UTF-8"},
      {"\xc0\xb6G", "is no UTF-8"},  // a 6 in more bytes than it takes
  };
  for (const Case& c : cases) {
    const Result<uint64_t> size = parse_size(c.text);
    ASSERT_FALSE(size) << c.text;
    EXPECT_EQ(size.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(size.error().message.find(c.why), std::string::npos) << c.text << ": " << size.error().message;
    EXPECT_NE(size.error().message.find("write a size like 6G"), std::string::npos);
  }
}

TEST(ParseSize, StopsAtNothingButTheEnd) {
  EXPECT_FALSE(parse_size(std::string("6G\0", 3)));
  EXPECT_FALSE(parse_size(std::string("6\0G", 3)));
}

TEST(FormatBytes, OneDecimalWhereItSaysMore) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(1536 * kMiB), "1.5 GiB");
  EXPECT_EQ(format_bytes(48 * kMiB), "48 MiB");
  EXPECT_EQ(format_bytes(kMiB - 1), "1 MiB");  // not "1024 KiB"
  EXPECT_EQ(format_bytes(1023 * 1024 + 900), "1023.9 KiB");
  EXPECT_EQ(format_bytes(~uint64_t{0}), "16 EiB");
}

}  // namespace
}  // namespace stoker
