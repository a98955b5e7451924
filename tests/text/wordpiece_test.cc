#include <gtest/gtest.h>

#include "tests/text/cpu_time.h"
#include "tests/text/tiny_vocab.h"
#include "text/bert_words.h"

namespace stoker::text {
namespace {

using namespace std::string_view_literals;

constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr Tokenizer::EncodeOptions kSpecial{.add_special = true, .parse_special = true};

std::vector<std::string> words(std::string_view text, BertForm form = {}) {
  BertWords cut(text, form);
  std::vector<std::string> out;
  for (std::string_view word = cut.next(); !word.empty(); word = cut.next()) out.emplace_back(word);
  return out;
}
using Words = std::vector<std::string>;

TEST(BertWords, WhiteSpacePunctuationIdeographs) {
  EXPECT_EQ(words("Hello  WORLD's\t x+=1"), (Words{"hello", "world", "'", "s", "x", "+", "=", "1"}));
  EXPECT_EQ(words("你好,a世b"), (Words{"你", "好", ",", "a", "世", "b"}));
  EXPECT_EQ(words("カタ€½ §"), (Words{"カタ€½", "§"}));  // Symbols outside ASCII are no punctuation, § is.
  EXPECT_EQ(words("豈"), (Words{"豈"}));                 // U+F900, decomposed
  EXPECT_EQ(words(""), Words{});
  EXPECT_EQ(words(" \n\t "), Words{});
}

TEST(BertWords, AccentsAndCase) {
  EXPECT_EQ(words("ÀÉ naïve e\u0301 İ ǅ"), (Words{"ae", "naive", "e", "i", "ǆ"}));
  EXPECT_EQ(words("Àé", {.lowercase = true, .strip_accents = false}), (Words{"àé"}));
  EXPECT_EQ(words("Àé", {.lowercase = false, .strip_accents = true}), (Words{"Ae"}));
  EXPECT_EQ(words("Àé", {.lowercase = false, .strip_accents = false}), (Words{"Àé"}));
  EXPECT_EQ(words("İ", {.lowercase = true, .strip_accents = false}), (Words{"i\u0307"}));
  EXPECT_EQ(words("\u0301"), Words{});
  EXPECT_EQ(words("한국"), (Words{"\u1112\u1161\u11ab\u1100\u116e\u11a8"}));
}

TEST(BertWords, WhatIsDropped) {
  EXPECT_EQ(words("a\0b\x0b\x7f\u00ad\u200b\ufeffc\ufffd\ue000"sv), (Words{"abc"}));
  EXPECT_EQ(words("a\xFF\xC3 \xED\xA0\x80z"), (Words{"a", "z"}));
  EXPECT_EQ(words("a\u0378\U0001FAE0"), (Words{"a\u0378\U0001FAE0"}));  // not assigned yet, or lately: part of a word
}

struct Small {
  TinyVocab vocab;
  TokenId un, able, aff, ffi, x, bang, mask;
  Small() {
    vocab.model = "bert";
    vocab.architecture = "bert";
    vocab.add("[UNK]", TokenKind::kControl);  // 0
    vocab.add("[CLS]", TokenKind::kControl);  // 1
    vocab.add("[SEP]", TokenKind::kControl);  // 2
    mask = vocab.add("[MASK]", TokenKind::kControl);
    un = vocab.add("▁un"), aff = vocab.add("aff"), able = vocab.add("able"), ffi = vocab.add("ffi"),
    x = vocab.add("▁x");
    bang = vocab.add("▁!");
    vocab.set("unknown_token_id", int64_t{0});
    vocab.set("cls_token_id", int64_t{1});
    vocab.set("seperator_token_id", int64_t{2});
  }
};

TEST(WordPiece, LongestFirstOrUnknown) {
  Small s;
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("unaffable x!", kPlain), (Ids{s.un, s.aff, s.able, s.x, s.bang}));
  EXPECT_EQ(t->encode("unaffible x", kPlain), (Ids{0, s.x}));  // aff comes first, ible is no token: no second try
  EXPECT_EQ(t->encode("able", kPlain), (Ids{0}));              // only within a word
  EXPECT_EQ(t->decode(t->encode("UNable x!", kPlain)), "unable x !");
}

TEST(WordPiece, FirstAndLastToken) {
  Small s;
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x", kSpecial), (Ids{1, s.x, 2}));
  EXPECT_EQ(t->encode("", kSpecial), (Ids{1, 2}));
  EXPECT_EQ(t->encode("\xFF", kSpecial), (Ids{1, 2}));
  EXPECT_EQ(t->encode("x[MASK]x [SEP]", kSpecial), (Ids{1, s.x, s.mask, s.x, 2, 2}));
  EXPECT_EQ(t->encode("[MASK]", kPlain), (Ids{0, 0, 0}));  // letters and brackets that this vocabulary does not have
  EXPECT_EQ(t->bos(), 1);
  s.vocab.set("add_bos_token", false);
  s.vocab.set("add_eos_token", false);
  EXPECT_EQ(s.vocab.must()->encode("x", kSpecial), (Ids{s.x}));
}

TEST(WordPiece, Normalizer) {
  Small s;
  const TokenId upper = s.vocab.add("▁X"), accent = s.vocab.add("▁é");
  EXPECT_EQ(s.vocab.must()->encode("X é", kPlain), (Ids{s.x, 0}));
  s.vocab.set("normalizer.lowercase", false);
  EXPECT_EQ(s.vocab.must()->encode("X é", kPlain), (Ids{upper, accent}));
  s.vocab.set("normalizer.strip_accents", true);
  EXPECT_EQ(s.vocab.must()->encode("X é", kPlain), (Ids{upper, 0}));
}

TEST(WordPiece, WordsOfMoreThanAHundredCharactersAreUnknown) {
  Small s;
  for (const char* text : {"▁é", "é"}) s.vocab.add(text);
  s.vocab.set("normalizer.strip_accents", false);
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += "é";
  EXPECT_EQ(t->encode(hundred, kPlain).size(), 100u);
  EXPECT_EQ(t->encode(hundred + "é", kPlain), (Ids{0}));
}

TEST(WordPiece, MegabytesInTime) {
  Small s;
  auto t = s.vocab.must();
  ASSERT_NE(t, nullptr);
  for (const std::string_view unit : {"a", "x ", "!", "\u0301", "你", "\xFF"}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    const double start = cpu_seconds();
    t->encode(text, kPlain);
    EXPECT_LT(cpu_seconds() - start, 0.3 * kSlowdown) << testing::PrintToString(unit);
  }
}

}  // namespace
}  // namespace stoker::text
