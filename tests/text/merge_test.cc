#include "text/merge.h"

#include <gtest/gtest.h>

#include <map>

namespace stoker::text {
namespace {

using Rules = std::map<std::pair<int32_t, int32_t>, Merge>;

// The definition: again and again the lowest rank, the leftmost of equal ones.
std::vector<int32_t> by_definition(std::vector<int32_t> ids, const Rules& rules) {
  for (;;) {
    size_t best = 0;
    Merge merge;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      auto rule = rules.find({ids[i], ids[i + 1]});
      if (rule != rules.end() && rule->second.rank < merge.rank) best = i, merge = rule->second;
    }
    if (merge.rank == kNoMerge) return ids;
    ids[best] = merge.result;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

// Ranks of SentencePiece come from scores: many pairs share one, and short and long runs must not differ.
TEST(Merge, HeapAndScanFollowTheDefinition) {
  uint64_t state = 1;
  auto next = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  for (int round = 0; round < 600; ++round) {
    Rules rules;
    for (int i = 0; i < 14; ++i)
      rules[{static_cast<int32_t>(next(5)), static_cast<int32_t>(next(5))}] = {static_cast<uint32_t>(next(6)),
                                                                               static_cast<int32_t>(next(5))};
    Symbols symbols;
    size_t size = 1 + next(round % 2 == 0 ? kFewSymbols : 200);
    for (size_t i = 0; i < size; ++i) symbols.add(static_cast<int32_t>(next(5)), i * 3);
    symbols.starts.push_back(size * 3);
    std::vector<int32_t> expected = by_definition(symbols.ids, rules);
    merge_all(symbols, [&](int32_t left, int32_t right, size_t begin, size_t end) {
      EXPECT_LT(begin, end);
      auto rule = rules.find({left, right});
      return rule != rules.end() ? rule->second : Merge{};
    });
    ASSERT_EQ(symbols.ids, expected);
    ASSERT_EQ(symbols.starts.size(), symbols.ids.size() + 1);
    ASSERT_EQ(symbols.starts.front(), 0u);
    ASSERT_EQ(symbols.starts.back(), size * 3);
    ASSERT_TRUE(std::is_sorted(symbols.starts.begin(), symbols.starts.end()));
  }
}

TEST(Merge, NothingAndOneSymbol) {
  auto never = [](int32_t, int32_t, size_t, size_t) { return Merge{}; };
  Symbols symbols;
  symbols.starts.push_back(0);
  merge_all(symbols, never);
  EXPECT_EQ(symbols.size(), 0u);
  symbols.clear();
  symbols.add(4, 0);
  symbols.starts.push_back(2);
  merge_all(symbols, never);
  EXPECT_EQ(symbols.ids, (std::vector<int32_t>{4}));
}

}  // namespace
}  // namespace stoker::text
