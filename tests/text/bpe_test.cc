#include <gtest/gtest.h>

#include <set>

#include "tests/text/tiny_vocab.h"
#include "text/pretokenizer.h"

namespace stoker::text {
namespace {

constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};

TEST(Bpe, MergesByRankLeftmostFirst) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  TokenId bc = vocab.merged("b", "c"), ab = vocab.merged("a", "b"), aa = vocab.merged("a", "a");
  TokenId abc = vocab.merged("ab", "c"), space_a = vocab.merged("Ġ", "a");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("abc", kPlain), (Ids{'a', bc}));  // bc comes before ab, and abc needs ab
  EXPECT_EQ(t->encode("ab", kPlain), (Ids{ab}));
  EXPECT_EQ(t->encode("aaa", kPlain), (Ids{aa, 'a'}));
  EXPECT_EQ(t->encode("a a", kPlain), (Ids{'a', space_a}));
  EXPECT_EQ(t->decode(Ids{abc, space_a}), "abc a");
}

TEST(Bpe, FirstOfTwoEqualMergesCounts) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  TokenId ab = vocab.merged("a", "b"), bc = vocab.merged("b", "c");
  vocab.merges.push_back("a b");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("abc", kPlain), (Ids{ab, 'c'}));
  EXPECT_EQ(t->encode("bc", kPlain), (Ids{bc}));
}

TEST(Bpe, IgnoreMergesTakesAWholePiece) {
  TinyVocab vocab = TinyVocab::bytes("llama-bpe");
  TokenId whole = vocab.add("abc");  // no merges lead there
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("abc", kPlain), (Ids{whole}));
  EXPECT_EQ(t->encode("abcd", kPlain), (Ids{'a', 'b', 'c', 'd'}));
  vocab.pre = "dbrx";  // the same pieces, without it
  t = vocab.must();
  ASSERT_NE(t, nullptr);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(t->encode("abc", kPlain), (Ids{'a', 'b', 'c'}));
}

// A merge whose text is no token still merges; what is left of it in the end becomes single bytes.
TEST(Bpe, MergesOverTextsThatAreNoTokens) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  vocab.merges.push_back("a b");
  TokenId abc = vocab.merged("ab", "c");
  vocab.merges.push_back("Ã ©");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("abc", kPlain), (Ids{abc}));
  EXPECT_EQ(t->encode("ab", kPlain), (Ids{'a', 'b'}));
  EXPECT_EQ(t->encode("é", kPlain), (Ids{0xC3, 0xA9}));
}

TEST(Bpe, APartMayBeginWithASpace) {
  TinyVocab vocab = TinyVocab::blanks("gemma4");
  TokenId tab_x = vocab.add(" x");
  vocab.merges.push_back("  x");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->token_bytes(tab_x), " x");
}

TEST(Bpe, InvalidBytesAreKept) {
  auto t = TinyVocab::bytes("llama-bpe").must();
  ASSERT_NE(t, nullptr);
  for (std::string text : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "a\xFF b\x80", "\xF0\x9F\x98"})
    EXPECT_EQ(t->decode_bytes(t->encode(text, kPlain)), text);
}

TEST(Bpe, BytesWithoutATokenAreNoted) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  vocab.tokens[0xFF] = "ÿÿ";
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("a\xFF\xFE", kPlain), (Ids{'a', 0xFE}));
  ASSERT_EQ(t->notes().size(), 1u);
  EXPECT_NE(t->notes()[0].find("1 bytes have no token"), std::string::npos);
}

TEST(Bpe, BadMergesAreRefused) {
  for (const char* merge : {"", "ab", "a ", " b", " "}) {
    TinyVocab vocab = TinyVocab::bytes("gpt-2");
    vocab.merges = {"a b", merge};
    auto t = vocab.load();
    ASSERT_FALSE(t) << merge;
    EXPECT_EQ(t.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(t.error().message.find("tokenizer.ggml.merges: entry 1"), std::string::npos) << t.error().message;
  }
}

TEST(Gemma4, BlanksCharactersAndWholeNewlines) {
  TinyVocab vocab = TinyVocab::blanks("gemma4");
  TokenId blank = vocab.add("▁"), x = vocab.add("x"), e = vocab.add("é"), newline = vocab.add("\n");
  TokenId newlines = vocab.add("\n\n");  // whole, no merges needed
  vocab.merges.push_back("▁ x");
  TokenId blank_x = vocab.add("▁x");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x x é", kPlain), (Ids{x, blank_x, blank, e}));
  EXPECT_EQ(t->encode("\n\nx\n", kPlain), (Ids{newlines, x, newline}));
  EXPECT_EQ(t->encode("\n\n\n", kPlain), (Ids{newline, newline, newline}));
  EXPECT_EQ(t->encode("€\xFF", kPlain), (Ids{3 + 0xE2, 3 + 0x82, 3 + 0xAC, 3 + 0xFF}));
  EXPECT_EQ(t->decode(Ids{blank_x, 3 + 'y'}), " xy");
}

TEST(Gemma4, BosWhateverTheFileSays) {
  TinyVocab vocab = TinyVocab::blanks("gemma4");
  vocab.set("add_bos_token", false);
  vocab.set("bos_token_id", int64_t{1});
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("", {.add_special = true}), (Ids{1}));
}

TEST(Whitespace, IsDropped) {
  TinyVocab vocab = TinyVocab::blanks("whitespace");
  TokenId a = vocab.add("a"), b = vocab.add("b"), ab = vocab.add("ab");
  vocab.merges.push_back("a b");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode(" ab\n\tb a\xE3\x80\x80", kPlain), (Ids{ab, b, a}));
  EXPECT_EQ(t->encode(" \n", kPlain), Ids{});
  vocab.set("normalizer.lowercase", true);
  auto refused = vocab.load();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
}

TEST(Pretokenizers, NamesAreUniqueAndAllLoad) {
  std::set<std::string_view> names;
  for (const Pretokenizer& pre : all_pretokenizers()) {
    EXPECT_TRUE(names.insert(pre.name).second) << pre.name;
    EXPECT_EQ(find_pretokenizer(pre.name), &pre);
    if (pre.plain_utf8) continue;
    auto t = TinyVocab::bytes(std::string(pre.name)).must();
    ASSERT_NE(t, nullptr);
    std::string text = "Hello  wörld's 12345\n\n 你好! \xFF";
    EXPECT_EQ(t->decode_bytes(t->encode(text, kPlain)), text) << pre.name;
  }
  EXPECT_GT(names.size(), 90u);
  EXPECT_EQ(find_pretokenizer("no such"), nullptr);
  EXPECT_EQ(find_pretokenizer(""), nullptr);
}

}  // namespace
}  // namespace stoker::text
