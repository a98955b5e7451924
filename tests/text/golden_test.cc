// The vocabularies that come with recorded texts and ids: NAME.gguf.inp has the texts, each followed by a line
// "__ggml_vocab_test__", NAME.gguf.out a line of ids per text. Made by the original tokenizers; tools/get-testdata.
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "tests/text/vocab_files.h"

namespace stoker::text {
namespace {

class Golden : public testing::TestWithParam<const char*> {};

std::vector<std::string> read_texts(const std::string& path) {
  std::string all = read_text(path, 1 << 20).value();
  constexpr std::string_view kEnd = "\n__ggml_vocab_test__\n";
  std::vector<std::string> out;
  size_t pos = 0;
  for (size_t end; (end = all.find(kEnd, pos)) != std::string::npos; pos = end + kEnd.size())
    out.push_back(all.substr(pos, end - pos));
  // One of the files ends with a text.
  if (pos < all.size()) out.push_back(all.substr(pos));
  return out;
}

std::vector<std::vector<TokenId>> read_ids(const std::string& path) {
  std::istringstream lines(read_text(path, 1 << 20).value());
  std::vector<std::vector<TokenId>> out;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    out.emplace_back(std::istream_iterator<TokenId>(words), std::istream_iterator<TokenId>());
  }
  return out;
}

TEST_P(Golden, SameIds) {
  auto tokenizer = load_vocab(GetParam());
  ASSERT_NE(tokenizer, nullptr);
  std::string base = vocab_path(GetParam()).string();
  auto texts = read_texts(base + ".inp");
  auto ids = read_ids(base + ".out");
  ASSERT_GE(texts.size(), 46u);
  ASSERT_EQ(texts.size(), ids.size());
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer->encode(texts[i], {.add_special = false, .parse_special = false}), ids[i]) << texts[i];
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Golden,
                         testing::Values("bert-bge", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4",
                                         "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35", "refact",
                                         "starcoder"),
                         [](const auto& name) { return test_name(name.param); });

}  // namespace
}  // namespace stoker::text
