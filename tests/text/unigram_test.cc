#include <gtest/gtest.h>

#include <cmath>

#include "tests/text/cpu_time.h"
#include "tests/text/tiny_vocab.h"
#include "text/charsmap.h"
#include "text/prefixes.h"

namespace stoker::text {
namespace {

constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr Tokenizer::EncodeOptions kSpecial{.add_special = true, .parse_special = true};

/// A table that replaces strings, none a beginning of another: nodes of one byte each, at places that do not collide.
std::vector<uint8_t> charsmap(const std::vector<std::pair<std::string, std::string>>& replaced) {
  std::vector<uint32_t> units(256 * 64, 0);
  std::string texts;
  uint32_t free = 1;
  const auto set_offset = [&](size_t node, uint32_t offset) { units[node] |= offset << 10; };
  set_offset(0, 256 * free++);
  for (const auto& [from, to] : replaced) {
    size_t children = units[0] >> 10;
    for (size_t i = 0; i < from.size(); ++i) {
      const auto byte = static_cast<uint8_t>(from[i]);
      const size_t node = children ^ byte;
      units[node] |= byte;
      if (units[node] >> 10 == 0) set_offset(node, static_cast<uint32_t>(node) ^ (256 * free++));
      children = node ^ (units[node] >> 10);
      if (i + 1 < from.size()) continue;
      units[node] |= 1u << 8;
      units[children] = 0x80000000u | static_cast<uint32_t>(texts.size());
    }
    texts += to + std::string(1, '\0');
  }
  const auto n = static_cast<uint32_t>(4 * units.size());
  std::vector<uint8_t> out;
  const auto add = [&](uint32_t x) {
    for (int i = 0; i < 32; i += 8) out.push_back(static_cast<uint8_t>(x >> i));
  };
  add(n);
  for (uint32_t unit : units) add(unit);
  out.insert(out.end(), texts.begin(), texts.end());
  return out;
}

struct Small {
  TinyVocab vocab;
  TokenId a, b, ab, blank, blank_a;
  explicit Small(bool prefix = false) {
    vocab.model = "t5";
    vocab.add("<pad>", TokenKind::kControl);
    vocab.add("</s>", TokenKind::kControl);
    vocab.add("<unk>", TokenKind::kUnknown);
    a = vocab.add("a", TokenKind::kNormal, -3), b = vocab.add("b", TokenKind::kNormal, -3);
    ab = vocab.add("ab", TokenKind::kNormal, -5), blank = vocab.add("▁", TokenKind::kNormal, -2);
    blank_a = vocab.add("▁a", TokenKind::kNormal, -4);
    if (prefix) vocab.set("add_space_prefix", true);
  }
  void set_charsmap(const std::vector<uint8_t>& bytes) {
    gguf::Array array{
        .element = gguf::ValueType::kU8, .ints = {bytes.begin(), bytes.end()}, .floats = {}, .strings = {}};
    vocab.more.push_back({"precompiled_charsmap", {gguf::ValueType::kArray, array}});
  }
};

TEST(Unigram, LargestSumOfScores) {
  Small s;
  const TokenId ba = s.vocab.add("ba", TokenKind::kNormal, -1);
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("ab", kPlain), (Ids{s.ab}));      // -5 rather than -6
  EXPECT_EQ(t->encode("aba", kPlain), (Ids{s.a, ba}));  // -4 rather than -8
  EXPECT_EQ(t->encode("a a", kPlain), (Ids{s.a, s.blank_a}));
  EXPECT_EQ(t->encode("aab", kSpecial), (Ids{s.a, s.ab, 1}));
  EXPECT_EQ(t->encode("", kSpecial), (Ids{1}));
}

TEST(Unigram, UnknownCharactersAreOneToken) {
  Small s;
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("xyé", kPlain), (Ids{2}));
  EXPECT_EQ(t->encode("xay z", kPlain), (Ids{2, s.a, 2, s.blank, 2}));
  EXPECT_EQ(t->encode("\xFF\xFE"
                      "a\xC3",
                      kPlain),
            (Ids{2, s.a, 2}));
  EXPECT_EQ(t->encode("z", kPlain), t->encode("\xED\xA0\x80", kPlain));
}

TEST(Unigram, ByteTokensInPlaceOfUnknown) {
  TinyVocab vocab = TinyVocab::blanks("t5");
  const TokenId a = vocab.add("a", TokenKind::kNormal, -1);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("aé", kPlain), (Ids{a, 3 + 0xC3, 3 + 0xA9}));
}

TEST(Unigram, Spaces) {
  Small s(true);
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("a", kPlain), (Ids{s.blank_a}));
  EXPECT_EQ(t->encode("a  a ", kPlain), (Ids{s.blank_a, s.blank, s.blank_a, s.blank}));
  EXPECT_EQ(t->decode(t->encode("a  a ", kPlain)), "a  a ");
  EXPECT_EQ(t->encode(" a<pad>a", kSpecial), (Ids{s.blank, s.blank_a, 0, s.blank_a, 1}));
  s.vocab.set("remove_extra_whitespaces", true);
  t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("  a  a ", kPlain), (Ids{s.blank_a, s.blank_a}));
  EXPECT_EQ(t->encode("   ", kPlain), Ids{});
  Small merged;
  merged.vocab.set("remove_extra_whitespaces", true);
  EXPECT_EQ(merged.vocab.must()->encode("  a  a ", kPlain), (Ids{merged.a, merged.blank_a}));
}

TEST(Unigram, UnusedTokensAreNoText) {
  Small s;
  s.vocab.add("aa", TokenKind::kUnused, 0);
  EXPECT_EQ(s.vocab.must()->encode("aa", kPlain), (Ids{s.a, s.a}));
}

TEST(Unigram, Charsmap) {
  Small s;
  s.set_charsmap(charsmap({{"A", "a"}, {"\uFF42", "b"}, {"\t", " "}, {"q", ""}, {"½", "a b"}}));
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("A\uFF42", kPlain), (Ids{s.ab}));
  EXPECT_EQ(t->encode("\ta", kPlain), (Ids{s.blank_a}));
  EXPECT_EQ(t->encode("aqb", kPlain), (Ids{s.ab}));
  EXPECT_EQ(t->encode("½", kPlain), (Ids{s.a, s.blank, s.b}));
}

TEST(Charsmap, LongestBeginning) {
  auto map = Charsmap::parse(charsmap({{"ab", "x"}, {"abcd", "y"}}));
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->longest("abce").size, 2u);
  EXPECT_EQ(map->longest("abcde").replacement, "y");
  EXPECT_EQ(map->longest("abcde").size, 4u);
  EXPECT_EQ(map->longest("b").size, 0u);
  EXPECT_EQ(map->longest(std::string_view("\0a", 2)).size, 0u);
}

TEST(Charsmap, DamagedOnesAreRefusedOrReplaceNothing) {
  const auto good = charsmap({{"ab", "x"}});
  for (const size_t size : {size_t{1}, size_t{3}, size_t{4}, size_t{100}}) {
    auto map = Charsmap::parse({good.begin(), good.begin() + static_cast<int64_t>(size)});
    ASSERT_FALSE(map) << size;
    EXPECT_EQ(map.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(map.error().message.find("precompiled_charsmap"), std::string::npos);
  }
  auto no_end = good;
  no_end.back() = 'x';
  EXPECT_FALSE(Charsmap::parse(no_end));
  // Any unit may be anything: nothing outside is read, and the work per character is bounded.
  for (const int fill : {0x00, 0x01, 0x55, 0x61, 0xAA, 0xFF}) {
    auto bytes = good;
    for (size_t i = 4; i + 3 < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(fill);
    auto map = Charsmap::parse(bytes);
    if (map) map->longest("aaaaaaaaaaaaaaaaUUUUUU\xAA\xFF");
  }
  EXPECT_EQ(Charsmap::parse({})->longest("a").size, 0u);
}

TEST(Prefixes, AllOfThemShortestFirst) {
  Texts texts;
  for (const char* text : {"a", "ab", "abc", "b", "ab", "\xFF", "abd"}) texts.add(text);
  Prefixes prefixes;
  EXPECT_EQ(prefixes.build(texts, std::vector<bool>(7, true)), 1u);
  const auto found = [&](std::string_view text) {
    Ids out;
    prefixes.each(texts, text, [&](TokenId id, size_t size) {
      EXPECT_EQ(texts[static_cast<size_t>(id)], text.substr(0, size));
      out.push_back(id);
    });
    return out;
  };
  EXPECT_EQ(found("abcd"), (Ids{0, 4, 2}));
  EXPECT_EQ(found("ab"), (Ids{0, 4}));
  EXPECT_EQ(found("b"), (Ids{3}));
  EXPECT_EQ(found("\xFF\xFF"), (Ids{5}));
  EXPECT_EQ(found("c"), Ids{});
  EXPECT_EQ(found(""), Ids{});
}

TEST(Unigram, RefusesWhatIsTooLongOrDamaged) {
  Small s;
  s.vocab.add(std::string(1025, 'a'));
  auto t = s.vocab.load();
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, ErrorCode::kUnsupported);
  Small damaged;
  damaged.set_charsmap({1, 2, 3});
  t = damaged.vocab.load();
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, ErrorCode::kCorrupt);
}

TEST(Unigram, ScoresThatAreNoNumbersDoNotHang) {
  Small s;
  s.vocab.scores[static_cast<size_t>(s.a)] = NAN;
  s.vocab.scores[static_cast<size_t>(s.b)] = -INFINITY;
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_FALSE(t->encode("abba x", kPlain).empty());
}

TEST(Unigram, MegabytesInTime) {
  Small s(true);
  for (int n = 2; n <= 16; ++n) s.vocab.add(std::string(static_cast<size_t>(n), 'a'), TokenKind::kNormal, -3);
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  for (const std::string_view unit : {"a", "a ", " ", "é", "\xFF"}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    const double start = cpu_seconds();
    t->encode(text, kPlain);
    EXPECT_LT(cpu_seconds() - start, 1.0 * kSlowdown) << testing::PrintToString(unit);
  }
}

}  // namespace
}  // namespace stoker::text
