// What the ledger is told about a vocabulary, against what is really allocated.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/text/vocab_files.h"

namespace {

std::atomic<size_t> live{0}, peak{0};

void* counted(void* block) {
  if (block == nullptr) std::abort();
  const size_t now = live.fetch_add(malloc_usable_size(block) + sizeof(size_t)) + malloc_usable_size(block);
  for (size_t seen = peak.load(); seen < now && !peak.compare_exchange_weak(seen, now);) {
  }
  return block;
}

void uncounted(void* block) {
  if (block != nullptr) live.fetch_sub(malloc_usable_size(block) + sizeof(size_t));
  std::free(block);
}

}  // namespace

void* operator new(size_t size) { return counted(std::malloc(size)); }
void operator delete(void* block) noexcept { uncounted(block); }
void operator delete(void* block, size_t) noexcept { uncounted(block); }

namespace stoker::text {
namespace {

class VocabularyMemory : public testing::TestWithParam<const char*> {};

TEST_P(VocabularyMemory, IsWhatTheLedgerIsTold) {
  const size_t before = live;
  auto file = gguf::File::open(vocab_path(GetParam()).string());
  ASSERT_TRUE(file) << file.error().message << ": run tools/get-testdata";
  const size_t with_file = live;
  peak = with_file;
  auto tokenizer = Tokenizer::from_gguf(*file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const size_t header = with_file - before, built = peak - with_file;
  const auto told = Tokenizer::memory_bytes(*file);
  EXPECT_LE(header, file->header_bytes());
  EXPECT_GE(header * 4, file->header_bytes() * 3);
  EXPECT_LE(built, told);
  EXPECT_GE(built * 3, told * 2);
}

INSTANTIATE_TEST_SUITE_P(All, VocabularyMemory,
                         testing::Values("aquila", "baichuan", "bert-bge", "nomic-bert-moe", "command-r",
                                         "deepseek-llm", "falcon", "gemma-4", "gpt-2", "gpt-neox", "llama-bpe",
                                         "llama-spm", "mpt", "phi-3", "qwen2", "qwen35", "refact"),
                         [](const auto& vocab) { return test_name(vocab.param); });

}  // namespace
}  // namespace stoker::text
