#include <gtest/gtest.h>

#include "tests/text/tiny_vocab.h"

namespace stoker::text {
namespace {

bool ends(const Tokenizer& t, TokenId id) { return t.is_end(id); }

TEST(KnownTokens, EndsByKeyAndByText) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  TokenId eos = vocab.add("<x>", TokenKind::kControl), eot = vocab.add("<|im_end|>", TokenKind::kControl);
  TokenId eom = vocab.add("<|eom_id|>", TokenKind::kControl), repo = vocab.add("<|repo_name|>", TokenKind::kControl);
  TokenId pad = vocab.add("<|fim_pad|>", TokenKind::kControl), file = vocab.add("<|file_sep|>", TokenKind::kControl);
  TokenId prefix = vocab.add("<|fim_prefix|>", TokenKind::kControl),
          start = vocab.add("<|im_start|>", TokenKind::kControl);
  vocab.set("eos_token_id", int64_t{eos});
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->eos(), eos);
  for (TokenId id : {eos, eot, eom, repo, pad, file}) EXPECT_TRUE(ends(*t, id)) << id;
  for (TokenId id : {prefix, start, TokenId{'a'}, TokenId{-1}, TokenId{100000}}) EXPECT_FALSE(ends(*t, id)) << id;
}

TEST(KnownTokens, ANormalEndTokenBecomesControl) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  TokenId eot = vocab.add("<|im_end|>");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->kind(eot), TokenKind::kControl);
  EXPECT_EQ(t->encode("<|im_end|>", {.add_special = false, .parse_special = true}), (Ids{eot}));
  EXPECT_EQ(t->encode("<|im_end|>", {.add_special = false, .parse_special = false}).size(), 10u);
  EXPECT_EQ(t->token_bytes(eot), "");
}

// Qwen 2.5 and Gemma 3 have it as the HTML tag; ending there would cut HTML short.
TEST(KnownTokens, SlashSOnlyWhereItIsControlOrEos) {
  for (TokenKind kind : {TokenKind::kNormal, TokenKind::kUserDefined, TokenKind::kControl}) {
    TinyVocab vocab = TinyVocab::bytes("gpt-2");
    TokenId tag = vocab.add("</s>", kind);
    auto t = vocab.must();
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(ends(*t, tag), kind == TokenKind::kControl);
    EXPECT_EQ(t->kind(tag), kind);
    vocab.set("eos_token_id", int64_t{tag});
    t = vocab.must();
    ASSERT_NE(t, nullptr);
    EXPECT_TRUE(ends(*t, tag));
    EXPECT_EQ(t->kind(tag), TokenKind::kControl);
  }
}

TEST(KnownTokens, GptOssGoesOnAfterEnd) {
  TinyVocab vocab = TinyVocab::bytes("gpt-4o");
  TokenId end = vocab.add("<|end|>", TokenKind::kControl), ret = vocab.add("<|return|>", TokenKind::kControl);
  TokenId call = vocab.add("<|call|>", TokenKind::kControl), channel = vocab.add("<|channel|>", TokenKind::kControl);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_TRUE(ends(*t, ret) && ends(*t, call));
  EXPECT_FALSE(ends(*t, end));
  EXPECT_EQ(t->token_bytes(end), "<|end|>");
  EXPECT_EQ(t->token_bytes(channel), "<|channel|>");

  TinyVocab other = TinyVocab::bytes("gpt-4o");
  end = other.add("<|end|>", TokenKind::kControl);
  t = other.must();
  ASSERT_NE(t, nullptr);
  EXPECT_TRUE(ends(*t, end));
}

TEST(KnownTokens, Gemma4DoesNotEndAtSlashS) {
  TinyVocab vocab = TinyVocab::blanks("gemma4");  // </s> is control
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_TRUE(ends(*t, 2));
  TokenId tool = vocab.add("<|tool_response>", TokenKind::kControl);
  t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_FALSE(ends(*t, 2));
  EXPECT_TRUE(ends(*t, tool));
  EXPECT_EQ(t->kind(2), TokenKind::kNormal);
}

}  // namespace
}  // namespace stoker::text
