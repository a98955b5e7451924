#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/text/tiny_vocab.h"
#include "text/merge_table.h"
#include "text/source.h"

namespace stoker::text {
namespace {

constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr Tokenizer::EncodeOptions kSpecial{.add_special = true, .parse_special = true};
constexpr TokenId kFirstByte = 3;

TokenId byte(int value) { return kFirstByte + value; }

TEST(Spm, BestScoreFirstThenLeftmost) {
  TinyVocab vocab = TinyVocab::blanks();
  TokenId a = vocab.add("a"), b = vocab.add("b"), ab = vocab.add("ab", TokenKind::kNormal, -2);
  TokenId ba = vocab.add("ba", TokenKind::kNormal, -1), aa = vocab.add("aa", TokenKind::kNormal, -2);
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("ab", kPlain), (Ids{ab}));
  EXPECT_EQ(t->encode("aba", kPlain), (Ids{a, ba}));
  EXPECT_EQ(t->encode("aab", kPlain), (Ids{aa, b}));  // aa and ab have the same score
  EXPECT_EQ(t->encode("aaa", kPlain), (Ids{aa, a}));
}

TEST(Spm, ScoreOrder) {
  double inf = std::numeric_limits<double>::infinity();
  const double descending[] = {inf, 1e30, 2, 1, 1e-30, 0, -1e-30, -1, -1000, -1e30, -inf, std::nan("")};
  for (size_t i = 1; i < std::size(descending); ++i)
    EXPECT_LT(score_rank(descending[i - 1]), score_rank(descending[i])) << descending[i];
  EXPECT_EQ(score_rank(0.0), score_rank(-0.0));
  EXPECT_LT(score_rank(std::nan("")), kNoMerge);
}

TEST(Spm, SpacePrefixAndSpaces) {
  TinyVocab vocab = TinyVocab::blanks();
  TokenId blank = vocab.add("▁"), x = vocab.add("x"), blank_x = vocab.add("▁x");
  TokenId control = vocab.add("<c>", TokenKind::kControl);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x", kPlain), (Ids{blank_x}));
  EXPECT_EQ(t->encode(" x", kPlain), (Ids{blank, blank_x}));
  EXPECT_EQ(t->encode("x x", kPlain), (Ids{blank_x, blank_x}));
  EXPECT_EQ(t->encode("x x", kSpecial), (Ids{1, blank_x, blank_x}));
  EXPECT_EQ(t->encode("<c>x<c>", kSpecial), (Ids{1, control, blank_x, control}));
  EXPECT_EQ(t->encode("", kSpecial), (Ids{1}));
  EXPECT_EQ(t->encode("", kPlain), Ids{});
  vocab.set("add_space_prefix", false);
  t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x x", kPlain), (Ids{x, blank_x}));
  EXPECT_EQ(t->encode("<c>x", kSpecial), (Ids{1, control, x}));
}

TEST(Spm, BytesOfWhatHasNoToken) {
  TinyVocab vocab = TinyVocab::blanks();
  TokenId e = vocab.add("é");
  vocab.add("▁");
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("éa\n", kPlain), (Ids{e, byte('a'), byte('\n')}));
  EXPECT_EQ(t->encode("€", kPlain), (Ids{byte(0xE2), byte(0x82), byte(0xAC)}));
  // One byte token per invalid byte, and what follows is not swallowed.
  EXPECT_EQ(t->encode("\xE9\xC3\xA9", kPlain), (Ids{byte(0xE9), e}));
  EXPECT_EQ(t->encode("\xC3", kPlain), (Ids{byte(0xC3)}));
  EXPECT_EQ(t->decode_bytes(t->encode("\xE9 \xC3\xA9", kPlain)), "\xE9 \xC3\xA9");
  EXPECT_EQ(t->encode("<0x41>", kPlain).size(), 6u);  // text that looks like a byte token is text
}

TEST(Spm, WithoutByteTokensUnknown) {
  TinyVocab vocab;
  vocab.model = "llama";
  vocab.add("<unk>", TokenKind::kUnknown);
  vocab.add("<s>", TokenKind::kControl);
  vocab.add("</s>", TokenKind::kControl);
  TokenId x = vocab.add("x");
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x€", kPlain), (Ids{x, 0, 0, 0}));
  EXPECT_FALSE(t->encode("xyz", kPlain).empty());
}

TEST(Spm, ControlUnknownAndByteTokensAreNoText) {
  TinyVocab vocab = TinyVocab::blanks();
  for (const char* text : {"<", "s", "/", ">", "<s", "u", "n", "k", "un", "nk", "<u", "unk"}) vocab.add(text);
  TokenId unused = vocab.add("su", TokenKind::kUnused);
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  for (TokenId id : t->encode("<s></s><unk>", kPlain)) EXPECT_GT(id, 258);
  EXPECT_EQ(t->encode("su", kPlain), (Ids{unused}));  // unused ones are not excluded
}

TEST(Spm, SameTextTwiceTheHighestIdCounts) {
  TinyVocab vocab = TinyVocab::blanks();
  vocab.add("x");
  TokenId second = vocab.add("x");
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x", kPlain), (Ids{second}));
  ASSERT_FALSE(t->notes().empty());
}

// Cutting at blanks must not change anything where tokens reach over them.
TEST(Spm, TokensOverSeveralWords) {
  TinyVocab vocab = TinyVocab::blanks();
  TokenId a = vocab.add("a", TokenKind::kNormal, -5), b = vocab.add("b", TokenKind::kNormal, -5);
  TokenId blank_b = vocab.add("▁b", TokenKind::kNormal, -2), phrase = vocab.add("a▁b", TokenKind::kNormal, -1);
  TokenId blanks = vocab.add("▁▁", TokenKind::kNormal, -3), blank = vocab.add("▁", TokenKind::kNormal, -9);
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("a b", kPlain), (Ids{phrase}));
  EXPECT_EQ(t->encode("b b", kPlain), (Ids{b, blank_b}));
  EXPECT_EQ(t->encode("a  b", kPlain), (Ids{a, blank, blank_b}));
  EXPECT_EQ(t->encode("a  ", kPlain), (Ids{a, blanks}));
}

}  // namespace
}  // namespace stoker::text
