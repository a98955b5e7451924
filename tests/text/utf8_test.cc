#include "text/utf8.h"

#include <gtest/gtest.h>

#include "text/tokenizer.h"

namespace stoker::text {
namespace {

const std::string kBad = "\uFFFD";

std::string streamed(std::initializer_list<std::string_view> parts) {
  Utf8Stream stream;
  std::string out;
  for (std::string_view part : parts) out += stream.push(part);
  return out + stream.finish();
}

TEST(Utf8, EveryCodePointAndBack) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    Utf8Char c = decode_utf8(text + "x");
    ASSERT_TRUE(c.valid);
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.size, text.size());
  }
}

TEST(Utf8, RefusesOverlongSurrogatesAndBeyond) {
  for (std::string_view text :
       {"\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98"}) {
    Utf8Char c = decode_utf8(text);
    EXPECT_FALSE(c.valid);
    EXPECT_EQ(c.size, 1u);
    EXPECT_EQ(c.code, kReplacement);
  }
}

TEST(Utf8Stream, ReplacesEachMaximalInvalidPrefix) {
  EXPECT_EQ(streamed({"a\xF0\x9F\x98z"}), "a" + kBad + "z");
  EXPECT_EQ(streamed({"\xE0\x80\x80"}), kBad + kBad + kBad);  // 80 cannot follow E0
  EXPECT_EQ(streamed({"\xC0\xAF"}), kBad + kBad);
  EXPECT_EQ(streamed({"\xED\xA0\x80"}), kBad + kBad + kBad);
  EXPECT_EQ(streamed({"\xF4\x90\x80\x80"}), kBad + kBad + kBad + kBad);
  EXPECT_EQ(streamed({"\xE2\x82\xE2\x82\xAC"}), kBad + "€");
  EXPECT_EQ(streamed({"\x80\xBF"}), kBad + kBad);
}

TEST(Utf8Stream, HoldsBackWhatMayBecomeACharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("x\xF0"), "x");
  EXPECT_EQ(stream.push("\x9F"), "");
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x8A!"), "😊!");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.finish(), kBad);
  EXPECT_EQ(stream.finish(), "");  // and can be used again
  EXPECT_EQ(stream.push("ok"), "ok");
}

TEST(Utf8Stream, InvalidBytesAreShownAtOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xFF"), kBad);
  EXPECT_EQ(stream.push("\xE0"), "");
  EXPECT_EQ(stream.push("\x80"), kBad + kBad);
}

// However the bytes are cut, the text is the same, always valid, and a real U+FFFD stays one.
TEST(Utf8Stream, CutsDoNotMatter) {
  const std::string kParts[] = {"a", "é", "€", "😊", kBad, "\xF0", "\x9F", "\xE2\x82", "\xC3", "\x80", "\xED\xA0", "\n"};
  uint32_t state = 12345;
  auto next = [&](uint32_t n) { return ((state = state * 1664525 + 1013904223) >> 8) % n; };
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) bytes += kParts[next(1 << 16) % std::size(kParts)];
    std::string whole = streamed({bytes});
    Utf8Stream stream;
    std::string out;
    for (size_t pos = 0; pos < bytes.size();) {
      size_t size = 1 + next(1 << 16) % 4;
      std::string part = stream.push(std::string_view(bytes).substr(pos, size));
      for (std::string_view rest = part; !rest.empty(); rest.remove_prefix(decode_utf8(rest).size))
        ASSERT_TRUE(decode_utf8(rest).valid);
      out += part;
      pos += size;
    }
    out += stream.finish();
    ASSERT_EQ(out, whole);
  }
}

}  // namespace
}  // namespace stoker::text
