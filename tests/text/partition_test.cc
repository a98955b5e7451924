#include "text/partition.h"

#include <gtest/gtest.h>

#include "tests/text/cpu_time.h"
#include "tests/text/tiny_vocab.h"

namespace stoker::text {
namespace {

constexpr Tokenizer::EncodeOptions kSpecial{.add_special = false, .parse_special = true};
constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};

Ids bytes(std::string_view text) {
  Ids out;
  for (char c : text) out.push_back(static_cast<uint8_t>(c));
  return out;
}

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Partition, ControlOnlyWhenAskedUserDefinedAlways) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  Ids control{vocab.add("<c>", TokenKind::kControl)}, user{vocab.add("<u>", TokenKind::kUserDefined)};
  Ids unknown{vocab.add("<unk>", TokenKind::kUnknown)};
  vocab.add("<n>");
  vocab.add("<x>", TokenKind::kUnused);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("a<c><u>b<unk>", kSpecial), bytes("a") + control + user + bytes("b") + unknown);
  EXPECT_EQ(t->encode("a<c><u>b<unk>", kPlain), bytes("a<c>") + user + bytes("b<unk>"));
  EXPECT_EQ(t->encode("<n><x>", kSpecial), bytes("<n><x>"));
  EXPECT_EQ(t->encode("<c", kSpecial), bytes("<c"));
  EXPECT_EQ(t->encode("", kSpecial), Ids{});
}

// Plain text never becomes a control token, not even by merges that make its text.
TEST(Partition, ControlTokensAreOutOfReachOfText) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  vocab.merged("<", "<");
  vocab.kinds.back() = static_cast<int32_t>(TokenKind::kControl);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("<<", kPlain), bytes("<<"));
  EXPECT_EQ(t->encode("<<", kSpecial), Ids{256});
}

TEST(Partition, LongestTokenFirstEvenWhenItStartsLater) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  Ids shorter{vocab.add("abc", TokenKind::kUserDefined)}, longer{vocab.add("cdef", TokenKind::kUserDefined)};
  Ids prefix{vocab.add("cd", TokenKind::kUserDefined)};
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("abcdef", kPlain), bytes("ab") + longer);
  EXPECT_EQ(t->encode("abcd", kPlain), shorter + bytes("d"));
  EXPECT_EQ(t->encode("cdeabc", kPlain), prefix + bytes("e") + shorter);
}

TEST(Partition, EqualLengthsLowerIdFirstThenLeftToRight) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  Ids first{vocab.add("aba", TokenKind::kUserDefined)};
  vocab.add("bab", TokenKind::kUserDefined);
  vocab.add("aba", TokenKind::kUserDefined);  // never found: the same text with a higher id
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("babab", kPlain), bytes("b") + first + bytes("b"));
  EXPECT_EQ(t->encode("ababa", kPlain), first + bytes("ba"));
}

TEST(Partition, ShorterTokenWhereTheLongerDoesNotFit) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  Ids two{vocab.add("  ", TokenKind::kUserDefined)}, three{vocab.add("   ", TokenKind::kUserDefined)};
  Ids four{vocab.add("    ", TokenKind::kControl)};
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode(std::string(6, ' '), kSpecial), four + two);
  EXPECT_EQ(t->encode(std::string(6, ' '), kPlain), three + three);
  EXPECT_EQ(t->encode(std::string(5, ' '), kPlain), three + two);
  EXPECT_EQ(t->encode(std::string(4, ' '), kPlain), three + bytes(" "));
}

// A control token hides behind no user-defined one of the same text, and the other way round.
TEST(Partition, SameTextTwiceOneOfThemSpecial) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  Ids control{vocab.add("<x>", TokenKind::kControl)}, user{vocab.add("<x>", TokenKind::kUserDefined)};
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("<x>", kSpecial), control);
  EXPECT_EQ(t->encode("<x>", kPlain), user);
}

TEST(Partition, OneByteAndNulTokens) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  Ids one{vocab.add("#", TokenKind::kUserDefined)}, nul{vocab.add(std::string("@\0", 2), TokenKind::kUserDefined)};
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("a#", kPlain), bytes("a") + one);
  EXPECT_EQ(t->encode(std::string("#@\0#", 4), kPlain), one + nul + one);
  EXPECT_EQ(t->encode("@", kPlain), bytes("@"));
}

// GGUF has no flags for it: Phi-3 is known by its name.
TEST(Partition, StripsWhiteSpaceWhereTheModelDoes) {
  TinyVocab vocab = TinyVocab::blanks();
  Ids end{vocab.add("<|end|>", TokenKind::kControl)};
  Ids x{vocab.add("x")}, blank{vocab.add("▁")};
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x<|end|> \n x", kSpecial).size(), 6u);
  vocab.more.push_back({"general.name", {gguf::ValueType::kString, std::string("Phi-3 mini")}});
  t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x <|end|> \n x", kSpecial), x + blank + end + x);
  EXPECT_EQ(t->encode("<s> x", kSpecial), Ids{1} + blank + x);  // not for <s>
  EXPECT_EQ(t->encode("<|end|>  ", kSpecial), end);

  TinyVocab masked = TinyVocab::bytes("jina-v2-code");
  Ids mask{masked.add("<mask>", TokenKind::kControl)};
  t = masked.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("a \t<mask> b", kSpecial), bytes("a") + mask + bytes(" b"));
}

TEST(Partition, AMegabyteOfOverlappingTokensIsFast) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  for (size_t n = 2; n < 40; ++n) vocab.add(std::string(n, ' '), TokenKind::kUserDefined);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  double start = cpu_seconds();
  Ids ids = t->encode(std::string(1 << 20, ' '), kPlain);
  EXPECT_LT(cpu_seconds() - start, 1.0 * kSlowdown);
  EXPECT_EQ(ids.size(), ((1 << 20) + 38) / 39u);
}

TEST(Partition, RefusesTokensThatAreAbsurdlyLong) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  vocab.add(std::string(4097, 'x'), TokenKind::kControl);
  auto t = vocab.load();
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(t.error().message.find("token 256 has 4097 bytes"), std::string::npos) << t.error().message;
}

}  // namespace
}  // namespace stoker::text
