#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/text/tiny_vocab.h"
#include "tests/text/vocab_files.h"

namespace stoker::text {
namespace {

constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};

void expect_refused(const TinyVocab& vocab, ErrorCode code, std::string_view words) {
  auto t = vocab.load();
  ASSERT_FALSE(t) << words;
  EXPECT_EQ(t.error().code, code) << t.error().message;
  EXPECT_NE(t.error().message.find(words), std::string::npos) << t.error().message;
  EXPECT_EQ(t.error().message.find('\n'), std::string::npos) << t.error().message;
}

TEST(Tokenizer, RefusesWhatItDoesNotKnow) {
  TinyVocab vocab = TinyVocab::bytes("gpt-17");
  expect_refused(vocab, ErrorCode::kUnsupported, "'gpt-17'");
  vocab.pre = "whitespace ";
  expect_refused(vocab, ErrorCode::kUnsupported, "'whitespace '");
  vocab.pre = "gpt-2";
  for (const char* model : {"rwkv", "plamo2", "hybriddna", "novel"}) {
    vocab.model = model;
    expect_refused(vocab, ErrorCode::kUnsupported, str_cat("'", model, "'"));
  }
}

TEST(Tokenizer, FilesWithoutOne) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  for (const char* model : {"", "none", "no_vocab"}) {
    vocab.model = model;
    expect_refused(vocab, ErrorCode::kNotFound, "no tokenizer");
  }
}

TEST(Tokenizer, CorruptKeys) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  vocab.kinds.pop_back();
  expect_refused(vocab, ErrorCode::kCorrupt, "tokenizer.ggml.token_type: 255 numbers for 256 tokens");
  vocab = TinyVocab::bytes("gpt-2");
  vocab.scores.pop_back();
  expect_refused(vocab, ErrorCode::kCorrupt, "tokenizer.ggml.scores: 255 numbers for 256 tokens");
  vocab = TinyVocab::bytes("gpt-2");
  vocab.tokens.clear();
  expect_refused(vocab, ErrorCode::kCorrupt, "tokenizer.ggml.tokens");
  for (const char* pre : {"gpt-2", "kimi-k2"}) {
    vocab = TinyVocab::bytes(pre);
    vocab.has_merges = false;
    expect_refused(vocab, ErrorCode::kCorrupt, "tokenizer.ggml.merges: absent");
  }
  for (const char* text : {"<0x4>", "<0x411>", "<0xG1>", "<0x 1>", "<0x+1>", "0x41", "<0X41>", "<0x41> "}) {
    vocab = TinyVocab::blanks();
    vocab.add(text, TokenKind::kByte);
    expect_refused(vocab, ErrorCode::kCorrupt, "token 259 is of type byte");
  }
}

TEST(Tokenizer, KeysOfTheWrongType) {
  for (const char* key : {"bos_token_id", "add_bos_token", "add_space_prefix", "suppress_tokens"}) {
    TinyVocab vocab = TinyVocab::blanks();
    vocab.more.push_back({key, {gguf::ValueType::kString, std::string("x")}});
    expect_refused(vocab, ErrorCode::kCorrupt, str_cat("tokenizer.ggml.", key));
  }
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreNone) {
  TinyVocab vocab = TinyVocab::blanks();
  vocab.set("bos_token_id", int64_t{259});
  vocab.set("eos_token_id", int64_t{0xFFFFFFFF});
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->bos(), -1);
  EXPECT_EQ(t->eos(), -1);
  EXPECT_FALSE(t->add_bos());  // though SentencePiece has it by default
  EXPECT_EQ(t->notes().size(), 2u);
}

TEST(Tokenizer, BosAndEosAsTheFileAsks) {
  TinyVocab vocab = TinyVocab::blanks();
  vocab.add("▁x");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x", {.add_special = true}), (Ids{1, 259}));
  vocab.set("add_bos_token", false);
  vocab.set("add_eos_token", true);
  t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("x", {.add_special = true}), (Ids{259, 2}));
  EXPECT_EQ(t->encode("x", {.add_special = false}), (Ids{259}));

  EXPECT_FALSE(TinyVocab::bytes("gpt-2").must()->add_bos());
  EXPECT_TRUE(TinyVocab::bytes("llama-bpe").must()->add_bos());
  EXPECT_TRUE(TinyVocab::bytes("tekken").must()->add_bos());
  EXPECT_EQ(TinyVocab::bytes("gpt-2").must()->bos(), 11);
  EXPECT_EQ(TinyVocab::bytes("glm4").must()->bos(), -1);
}

/// What stands before, between and behind two texts, as ids.
Ids around(const TinyVocab& vocab) {
  const auto t = vocab.must();
  if (!t) return {};
  const auto pair = t->encode_pair("", "");
  EXPECT_LE(pair.second, pair.ids.size());
  EXPECT_EQ(t->joins_pairs(), !pair.ids.empty() && pair.ids != Ids{t->bos()});
  return pair.ids;
}

TEST(Tokenizer, PairsAsTheFileAsks) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  const TokenId begin = vocab.add("<s>", TokenKind::kControl), end = vocab.add("</s>", TokenKind::kControl),
                separator = vocab.add("<sep>", TokenKind::kControl);
  vocab.set("bos_token_id", int64_t{begin});
  vocab.set("eos_token_id", int64_t{end});
  vocab.set("seperator_token_id", int64_t{separator});
  EXPECT_EQ(around(vocab), Ids{});
  TinyVocab roberta = vocab;  // has a separator unless the file says otherwise
  roberta.pre = "roberta-bpe";
  EXPECT_EQ(around(roberta), Ids{separator});
  vocab.set("add_bos_token", true);
  EXPECT_EQ(around(vocab), Ids{begin});
  vocab.set("add_eos_token", true);
  EXPECT_EQ(around(vocab), (Ids{begin, end, end}));
  vocab.set("add_sep_token", true);
  EXPECT_EQ(around(vocab), (Ids{begin, end, separator, end}));
  const auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  const auto pair = t->encode_pair("a<sep>", "b");
  EXPECT_EQ(pair.ids, (Ids{begin, 'a', '<', 's', 'e', 'p', '>', end, separator, 'b', end}));
  EXPECT_EQ(pair.second, 9u);
}

TEST(Tokenizer, PairsOfFilesThatDoNotSay) {
  TinyVocab bert;  // WordPiece: one separator between and one behind, whatever is said of separators alone
  bert.model = bert.architecture = "bert";
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) bert.add(text, TokenKind::kControl);
  bert.set("bos_token_id", int64_t{2});
  bert.set("seperator_token_id", int64_t{3});
  EXPECT_EQ(around(bert), (Ids{2, 3, 3}));
  bert.set("add_sep_token", true);
  EXPECT_EQ(around(bert), (Ids{2, 3, 3}));
  TinyVocab xlm_r = TinyVocab::blanks("t5");  // two EOS between
  xlm_r.set("bos_token_id", int64_t{1});
  xlm_r.set("eos_token_id", int64_t{2});
  xlm_r.set("add_bos_token", true);
  EXPECT_EQ(around(xlm_r), (Ids{1, 2, 2}));
  xlm_r.architecture = "bert";
  EXPECT_EQ(around(xlm_r), (Ids{1, 2, 2, 2}));
}

TEST(Tokenizer, PartsAreOneTextButForControlTokens) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  const TokenId joined = vocab.merged("a", "b"), control = vocab.add("<c>", TokenKind::kControl);
  const auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  using Part = Tokenizer::Part;
  const auto ids = [&](std::vector<Part> parts) { return t->encode(parts); };
  EXPECT_EQ(ids({{"a", true}, {"b", false}}), Ids{joined});
  EXPECT_EQ(ids({{"a<c>", true}, {"b<c>", false}, {"<c>a", true}}),
            (Ids{'a', control, 'b', '<', 'c', '>', control, 'a'}));
  EXPECT_EQ(ids({{"<c", true}, {">", false}}), (Ids{'<', 'c', '>'}));
  EXPECT_EQ(ids({}), Ids{});
}

TEST(Tokenizer, DecodesByKind) {
  TinyVocab vocab = TinyVocab::bytes("gpt-2");
  TokenId control = vocab.add("<c>", TokenKind::kControl), unused = vocab.add("[PAD]x", TokenKind::kUnused);
  TokenId user = vocab.add("Ġ ", TokenKind::kUserDefined), raw = vocab.add("Ġa▁你"), undefined = vocab.add("u");
  TokenId empty = vocab.add("");
  vocab.kinds[static_cast<size_t>(undefined)] = 77;
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->token_bytes(control), "");
  EXPECT_EQ(t->token_bytes(control, {.show_special = true}), "<c>");
  EXPECT_EQ(t->token_bytes(unused, {.show_special = true}), "");
  EXPECT_EQ(t->token_bytes(undefined), "");
  EXPECT_EQ(t->token_bytes(user), "Ġ ");    // verbatim
  EXPECT_EQ(t->token_bytes(raw), " a▁你");  // characters that stand for no byte are themselves
  EXPECT_EQ(t->piece(empty), str_cat("[EMPTY_", empty, "]"));
  for (TokenId id : {-1, t->vocab_size(), 1 << 30}) {
    EXPECT_EQ(t->token_bytes(id), "");
    EXPECT_EQ(t->piece(id), "");
    EXPECT_EQ(t->kind(id), TokenKind::kUndefined);
  }
  EXPECT_EQ(t->decode(Ids{'a', control, 0xF0, 0x9F, -5, 'b'}), "a\uFFFDb");
  EXPECT_EQ(t->decode_bytes(Ids{'a', control, 0xF0}, {.show_special = true}), "a<c>\xF0");
}

TEST(Tokenizer, DecodeTakesTheOneSpaceThatEncodePutThere) {
  TinyVocab vocab = TinyVocab::blanks();
  TokenId blank = vocab.add("▁"), x = vocab.add("x");
  TokenId user = vocab.add(" u", TokenKind::kUserDefined);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  for (std::string text : {"x", " x", "  x x ", "", " "})
    for (bool special : {false, true}) EXPECT_EQ(t->decode(t->encode(text, {.add_special = special})), text);
  EXPECT_EQ(t->decode(Ids{1, blank, x}, {.show_special = true}), "<s>x");
  EXPECT_EQ(t->decode(Ids{user, blank, x}), " u x");
  EXPECT_EQ(t->decode_bytes(Ids{blank, x}), " x");  // raw
  vocab.set("add_space_prefix", false);
  t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->decode(Ids{blank, x}), " x");
}

// A token that is a real replacement character is no invalid byte.
TEST(Tokenizer, RealReplacementCharacters) {
  TinyVocab vocab = TinyVocab::blanks();
  TokenId real = vocab.add("▁\uFFFD");
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->token_bytes(real), " \xEF\xBF\xBD");
  EXPECT_EQ(t->decode_bytes(Ids{real, 3 + 0xFF}), " \xEF\xBF\xBD\xFF");
}

TEST(Tokenizer, SuppressedTokens) {
  TinyVocab vocab = TinyVocab::blanks();
  gguf::Array array{.element = gguf::ValueType::kI32, .ints = {5, -1, 259, 7}, .floats = {}, .strings = {}};
  vocab.more.push_back({"suppress_tokens", {gguf::ValueType::kArray, array}});
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(Ids(t->suppressed().begin(), t->suppressed().end()), (Ids{5, 7}));
}

TEST(Tokenizer, WithoutTypesByteTokensAreKnownByText) {
  TinyVocab vocab = TinyVocab::blanks();
  vocab.kinds.clear();
  vocab.set("add_space_prefix", false);
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->encode("a", kPlain), (Ids{3 + 'a'}));
  EXPECT_EQ(t->decode(Ids{3 + 'a'}), "a");
}

TEST(Tokenizer, MissingPreIsTheDefaultListWithANote) {
  TinyVocab vocab = TinyVocab::bytes("");
  TokenId digits = vocab.merged("1", "2");
  digits = vocab.merged("12", "3");
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->pre_name(), "");
  EXPECT_EQ(t->encode("123123", kPlain), (Ids{digits, digits}));  // in threes, as R6 does
  ASSERT_EQ(t->notes().size(), 1u);
  EXPECT_NE(t->notes()[0].find("tokenizer.ggml.pre"), std::string::npos);
}

TEST(Tokenizer, TestModel) {
  TinyVocab vocab;
  vocab.model = "test";
  for (int i = 0; i < 100; ++i) vocab.add(str_cat("t", i));
  auto t = vocab.must();
  ASSERT_NE(t, nullptr);
  auto hash = [](std::string_view text) {
    uint32_t h = 0;
    for (char c : text) h = 31 * h + static_cast<uint8_t>(c);
    return static_cast<TokenId>(h % 100);
  };
  EXPECT_EQ(t->encode("hello wo", kPlain), (Ids{hash("hello"), hash(" wo")}));
}

TEST(Tokenizer, ThreadsGetTheSameIds) {
  auto t = load_vocab("gpt-2");
  ASSERT_NE(t, nullptr);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += str_cat("word", i, " and some other words ", i * i, "\n");
  std::vector<Ids> ids(4);
  std::vector<std::thread> threads;
  for (Ids& out : ids) threads.emplace_back([&] { out = t->encode(text, kPlain); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& out : ids) EXPECT_EQ(out, ids[0]);
  EXPECT_EQ(t->decode(ids[0]), text);
}

}  // namespace
}  // namespace stoker::text
