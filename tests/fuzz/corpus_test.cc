// Feeds every file of a corpus folder to the fuzzer that this is linked with, once.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

TEST(Corpus, EveryFileIsSurvived) {
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STOKER_CORPUS)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    ASSERT_FALSE(in.bad());
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
    ++n_files;
  }
  EXPECT_GT(n_files, 0) << STOKER_CORPUS;
}

}  // namespace
