// Ids that other tokenizers give for the same files and texts, special tokens and BOS included.
#include <gtest/gtest.h>

#include "gguf/writer.h"
#include "tests/text/golden_json.h"
#include "tests/text/vocab_files.h"

namespace stoker::text {
namespace {

void expect_ids(const Tokenizer& tokenizer, const nlohmann::json& golden, Tokenizer::EncodeOptions options) {
  const auto& texts = golden.at("texts");
  const auto& ids = golden.at("ids");
  ASSERT_EQ(texts.size(), ids.size());
  ASSERT_GT(texts.size(), 40u);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string text = texts[i];
    EXPECT_EQ(tokenizer.encode(text, options), ids[i].get<std::vector<TokenId>>()) << text;
  }
}

class LlamaCpp : public testing::TestWithParam<std::string> {};

TEST_P(LlamaCpp, SameIds) {
  auto tokenizer = load_vocab(GetParam());
  ASSERT_NE(tokenizer, nullptr);
  expect_ids(*tokenizer, read_golden("ids-" + GetParam() + ".json"), {.add_special = true, .parse_special = true});
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, LlamaCpp,
                         testing::Values("aquila", "baichuan", "command-r", "deepseek-coder", "deepseek-llm", "falcon",
                                         "gemma-4", "gpt-2", "gpt-neox", "llama-bpe", "llama-spm", "mpt", "phi-3",
                                         "qwen2", "qwen35", "refact", "starcoder"),
                         [](const auto& name) { return test_name(name.param); });

TEST(HuggingFace, SameIdsOfEncoders) {
  for (const std::string name : {"bert-bge", "nomic-bert-moe"}) {
    auto tokenizer = load_vocab(name);
    ASSERT_NE(tokenizer, nullptr);
    expect_ids(*tokenizer, read_golden("hf-" + name + ".json"), {.add_special = true, .parse_special = true});
  }
}

// The file with other keys.
TEST(HuggingFace, SameIdsWithOtherNormalizers) {
  auto file = gguf::File::open(vocab_path("bert-bge").string());
  ASSERT_TRUE(file) << "run tools/get-testdata: " << file.error().message;
  nlohmann::json golden = read_golden("hf-bert-forms.json");
  for (const bool lowercase : {true, false}) {
    gguf::Writer writer("bert");
    writer.add_string("tokenizer.ggml.model", "bert");
    for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type"}) writer.add(key, *file->find(key));
    const std::string keys = "tokenizer.ggml.normalizer.";
    writer.add(keys + "lowercase", {gguf::ValueType::kBool, lowercase});
    writer.add(keys + "strip_accents", {gguf::ValueType::kBool, !lowercase});
    const std::string path = testing::TempDir() + "stoker-forms.gguf";
    ASSERT_TRUE(writer.write(path));
    auto tokenizer = load_tokenizer(path);
    std::filesystem::remove(path);
    ASSERT_NE(tokenizer, nullptr);
    golden["ids"] = golden[lowercase ? "lowered" : "stripped"];
    expect_ids(*tokenizer, golden, {.add_special = true, .parse_special = true});
  }
}

TEST(HuggingFace, SameIdsWithTheDeepSeekVocabulary) {
  auto tokenizer = load_tokenizer(STOKER_TOKENIZER_FILES "/deepseek.gguf");
  ASSERT_NE(tokenizer, nullptr);
  expect_ids(*tokenizer, read_golden("hf-deepseek.json"), {.add_special = false, .parse_special = true});
}

TEST(Tiktoken, SameIdsWithTheTekkenVocabulary) {
  auto tokenizer = load_tokenizer(STOKER_TOKENIZER_FILES "/mistral-tekken.gguf");
  ASSERT_NE(tokenizer, nullptr);
  expect_ids(*tokenizer, read_golden("mistral-tekken.json"), {.add_special = false, .parse_special = false});
}

TEST(SentencePiece, SameIdsWithAMistralVocabulary) {
  auto tokenizer = load_tokenizer(STOKER_TOKENIZER_FILES "/mistral-spm.gguf");
  ASSERT_NE(tokenizer, nullptr);
  expect_ids(*tokenizer, read_golden("mistral-spm.json"), {.add_special = false, .parse_special = false});
}

}  // namespace
}  // namespace stoker::text
