// Every list of expressions against a full regular expression engine, and against long texts of the kinds that make
// such engines slow or overflow their stack.
#include "text/lists.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/str_cat.h"
#include "tests/text/cpu_time.h"
#include "tests/text/golden_json.h"

namespace stoker::text {
namespace {

class Pieces final : public PieceSink {
 public:
  void piece(std::string_view text) override { sizes.push_back(text.size()); }
  std::vector<size_t> sizes;
};

std::vector<size_t> pieces_of(std::span<const Pass> passes, std::string_view text) {
  Pieces out;
  split(passes, text, out);
  return std::move(out).sizes;
}

struct Named {
  int number;
  std::span<const Pass> passes;
};
using namespace lists;
const Named kLists[] = {{1, kR1},   {2, kR2},   {3, kR3},   {4, kR4},   {5, kR5},   {6, kR6},   {7, kR7},   {8, kR8},
                        {9, kR9},   {10, kR10}, {11, kR11}, {12, kR12}, {13, kR13}, {14, kR14}, {15, kR15}, {16, kR16},
                        {17, kR17}, {18, kR18}, {19, kR19}, {20, kR20}, {21, kR21}, {22, kR22}, {23, kR23}, {24, kR24},
                        {25, kR25}, {26, kR26}, {27, kR27}, {28, kR28}, {29, kR29}, {30, kR30}, {31, kR31}};

class Lists : public testing::TestWithParam<Named> {};

TEST_P(Lists, PiecesOfARegularExpressionEngine) {
  auto golden = read_golden("pieces.json");
  const auto& texts = golden.at("texts");
  const auto& sizes = golden.at(str_cat("R", GetParam().number));
  ASSERT_EQ(texts.size(), sizes.size());
  ASSERT_GT(texts.size(), 90u);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string text = texts[i];
    EXPECT_EQ(pieces_of(GetParam().passes, text), sizes[i].get<std::vector<size_t>>()) << text;
  }
}

std::string repeated(std::string_view unit, size_t size) {
  std::string out;
  while (out.size() < size) out += unit;
  return out;
}

void expect_linear(const Named& list, std::string_view unit, size_t size, std::string_view end) {
  std::string text = repeated(unit, size) + std::string(end);
  double start = cpu_seconds();
  auto sizes = pieces_of(list.passes, text);
  // 1 s for 1 MiB. Some 0.02 is what it takes; what is quadratic would take minutes.
  EXPECT_LT(cpu_seconds() - start, 1e-6 * static_cast<double>(size) * kSlowdown)
      << list.number << " on " << unit << end;
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), size_t{0}), text.size());
}

// Letters, blank lines and so on in a row have overflowed the stack of engines, or taken them hours.
TEST_P(Lists, AMegabyteIsCutInASecond) {
  for (std::string_view unit : {"a", "Z", " ", "\n", "us", "e\xCC\x81"}) expect_linear(GetParam(), unit, 1 << 20, "");
}

TEST_P(Lists, NothingIsWorseThanLinear) {
  for (std::string_view unit : {"a", "Z", " ", "\n", "\xCC\x81", "1", "!", "'", "\t ", " \n", "\r\n", "\xE4\xBD\xA0",
                                "aZ", "\xFF", "a ", "<sentinel:1", "IMGIMGA", "\xC7\x85", "\xCA\xB0Z"})
    for (std::string_view end : {"", "x", "\xE4\xB8\x96", "1", "\xCC\x81"})
      expect_linear(GetParam(), unit, 1 << 16, end);
}

INSTANTIATE_TEST_SUITE_P(All, Lists, testing::ValuesIn(kLists),
                         [](const auto& list) { return str_cat("R", list.param.number); });

// Random bytes: all of the text comes back, in pieces that are not empty.
TEST(Split, PiecesAreTheText) {
  uint64_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += static_cast<char>(state >> 56);
    }
    for (const Named& list : kLists) {
      size_t total = 0;
      for (size_t size : pieces_of(list.passes, text)) {
        EXPECT_GT(size, 0u);
        total += size;
      }
      EXPECT_EQ(total, text.size());
    }
  }
}

}  // namespace
}  // namespace stoker::text
