// Properties on the real vocabularies of tools/get-testdata.
#include <gtest/gtest.h>

#include "base/str_cat.h"
#include "tests/text/cpu_time.h"
#include "tests/text/vocab_files.h"
#include "text/vocab.h"

namespace stoker::text {
namespace {

using Ids = std::vector<TokenId>;
constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};

// With a token for each byte. The others lack those that no UTF-8 has (C0, C1, F5 to FF), and some more; two of
// DeepSeek have "ÿ", the character for FF, as a user-defined token that is the letter.
constexpr const char* kWholeBytes[] = {"aquila", "command-r", "gpt-2",     "llama-bpe", "qwen2",
                                       "qwen35", "baichuan",  "llama-spm", "phi-3",     "gemma-4"};
// One of each kind.
constexpr const char* kMegabytes[] = {"llama-bpe", "qwen35",   "falcon",        "gemma-4",
                                      "llama-spm", "bert-bge", "nomic-bert-moe"};
constexpr const char* kAll[] = {"aquila",  "baichuan", "command-r", "deepseek-coder", "deepseek-llm", "falcon",
                                "gemma-4", "gpt-2",    "gpt-neox",  "llama-bpe",      "llama-spm",    "mpt",
                                "phi-3",   "qwen2",    "qwen35",    "refact",         "starcoder"};

class Random {
 public:
  uint32_t operator()(uint32_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33) % n;
  }

 private:
  uint64_t state_ = 7;
};

std::string random_text(Random& random) {
  static constexpr std::string_view kParts[] = {
      " ",    "\n",       "the", "The", "'s",           "123", "é", "世界", "😊", "\xFF",
      "\xC3", "\xE2\x96", "▁",   "\t",  "\xED\xA0\x80", "<",   "|", ">",    "#", "\0"};
  std::string out;
  for (uint32_t i = random(40); i > 0; --i) {
    if (random(3) == 0) {
      out += static_cast<char>(random(256));
    } else {
      out += kParts[random(std::size(kParts))];
    }
  }
  return out;
}

// Streamed token by token, with the bytes of each, is the same as all at once.
std::string streamed(const Tokenizer& t, const Ids& ids) {
  Utf8Stream stream;
  std::string out;
  for (TokenId id : ids) out += stream.push(t.token_bytes(id));
  return out + stream.finish();
}

std::string as_text(std::string_view bytes) {
  Utf8Stream stream;
  std::string out = stream.push(bytes);
  return out + stream.finish();
}

class WholeBytes : public testing::TestWithParam<const char*> {};

TEST_P(WholeBytes, RandomBytesComeBack) {
  auto t = load_vocab(GetParam());
  ASSERT_NE(t, nullptr);
  bool prefixed = t->model_name() == "llama" && t->decode_bytes(t->encode("x", kPlain)) == " x";
  Random random;
  for (int round = 0; round < 1000; ++round) {
    std::string text = random_text(random);
    Ids ids = t->encode(text, kPlain);
    std::string bytes = t->decode_bytes(ids);
    std::string expected(prefixed && !text.empty() ? " " : "");
    if (t->model_name() == "gpt2") {
      expected += text;
    } else {
      append_blanks_as_spaces(expected, text);  // U+2581 is how these vocabularies write a space.
    }
    ASSERT_EQ(bytes, expected) << testing::PrintToString(text);
    ASSERT_EQ(streamed(*t, ids), as_text(bytes));
    for (TokenId id : ids) ASSERT_TRUE(t->kind(id) != TokenKind::kControl && t->kind(id) != TokenKind::kUnknown);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, WholeBytes, testing::ValuesIn(kWholeBytes),
                         [](const auto& name) { return test_name(name.param); });

class Megabyte : public testing::TestWithParam<const char*> {};

TEST_P(Megabyte, OfOneKindTakesLessThanASecond) {
  auto t = load_vocab(GetParam());
  ASSERT_NE(t, nullptr);
  for (std::string_view unit : {"a", "Z", " ", "\n", "us", "é"}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    double start = cpu_seconds();
    Ids ids = t->encode(text, kPlain);
    EXPECT_LT(cpu_seconds() - start, 1.0 * kSlowdown) << testing::PrintToString(unit);
    EXPECT_TRUE(!ids.empty() || t->decode_bytes(t->encode(" \n", kPlain)).empty());  // White space may be nothing.
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Megabyte, testing::ValuesIn(kMegabytes),
                         [](const auto& name) { return test_name(name.param); });

class AllVocabs : public testing::TestWithParam<const char*> {};

// Every token text that is text encodes to something that decodes to it.
TEST_P(AllVocabs, TokensDecodeAndEncode) {
  auto t = load_vocab(GetParam());
  ASSERT_NE(t, nullptr);
  size_t n_same = 0, n_normal = 0;
  for (TokenId id = 0; id < t->vocab_size(); id += 11) {
    if (t->kind(id) != TokenKind::kNormal) continue;
    std::string text(t->token_bytes(id));
    Ids ids = t->encode(text, kPlain);
    std::string back = t->decode_bytes(ids);
    if (back.size() == text.size() + 1) back.erase(0, 1);  // the space prefix
    EXPECT_EQ(back, text) << id;
    ++n_normal;
    if (ids.size() <= 2) ++n_same;
  }
  EXPECT_GT(n_same, n_normal / 2);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, AllVocabs, testing::ValuesIn(kAll),
                         [](const auto& name) { return test_name(name.param); });

// Ids that went wrong elsewhere: the space marker behind a special token, the space prefix, Falcon's digits in threes,
// runs of newlines, an emoji in Gemma 4.
TEST(RealVocab, KnownTroubles) {
  auto spm = load_vocab("llama-spm");
  ASSERT_NE(spm, nullptr);
  EXPECT_EQ(spm->encode("<s>G", {.add_special = false, .parse_special = true}), (Ids{1, 402}));
  EXPECT_EQ(spm->encode("This is 🦙.cpp", {.add_special = true}),
            (Ids{1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223}));
  auto falcon = load_vocab("falcon");
  ASSERT_NE(falcon, nullptr);
  Ids numbers = falcon->encode("123456", kPlain);
  EXPECT_EQ(numbers.size(), 2u);
  auto command = load_vocab("command-r");
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->encode("\n\n\n", kPlain).size(), 1u);
}

TEST(RealVocab, LoadsInTimeAndEncodesFast) {
  std::string text;
  for (int i = 0; text.size() < 1 << 20; ++i)
    text += str_cat("It was the ", i, "th time that somebody had asked the old librarian about paragraph ", i * 31 % 97,
                    ", and she wouldn't have minded if only they had listened.\n");
  for (auto [name, load_seconds, bytes_per_second] :
       {std::tuple("qwen2", 0.1, 10e6), std::tuple("llama-bpe", 0.1, 10e6), std::tuple("llama-spm", 0.1, 2e6)}) {
    auto file = gguf::File::open(vocab_path(name).string());
    ASSERT_TRUE(file) << "run tools/get-testdata: " << file.error().message;
    double start = cpu_seconds();
    auto t = Tokenizer::from_gguf(*file);
    double loaded = cpu_seconds();
    ASSERT_TRUE(t);
    Ids ids = (*t)->encode(text, kPlain);
    double encoded = cpu_seconds();
    // Twice what is promised: the machine may be busy, and caches are shared.
    EXPECT_LT(loaded - start, 2 * load_seconds * kSlowdown) << name;
    EXPECT_GT(static_cast<double>(text.size()) / (encoded - loaded), bytes_per_second / 2 / kSlowdown) << name;
    std::printf("%s: loaded in %.1f ms, %.1f MB/s\n", name, 1e3 * (loaded - start),
                1e-6 * static_cast<double>(text.size()) / (encoded - loaded));
  }
}

}  // namespace
}  // namespace stoker::text
