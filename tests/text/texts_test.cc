#include "text/texts.h"

#include <gtest/gtest.h>

#include "base/str_cat.h"
#include "text/hash.h"
#include "text/merge_table.h"

namespace stoker::text {
namespace {

TEST(TextTable, FindsWhatWasInsertedAndGrows) {
  Texts texts;
  TextTable table;
  for (int32_t id = 0; id < 5000; ++id) {
    texts.add(str_cat("text ", id * 7919));
    EXPECT_EQ(table.insert(texts, id), TextTable::kNone);
  }
  for (int32_t id = 0; id < 5000; ++id) EXPECT_EQ(table.find(texts, str_cat("text ", id * 7919)), id);
  EXPECT_EQ(table.find(texts, "text 1"), TextTable::kNone);
  EXPECT_EQ(table.find(texts, ""), TextTable::kNone);
}

TEST(TextTable, TheLaterIdOfATextCounts) {
  Texts texts;
  for (const char* text : {"a", "b", "a", "", "b"}) texts.add(text);
  TextTable table;
  EXPECT_EQ(table.insert_all(texts, {true, true, true, true, false}), 1u);
  EXPECT_EQ(table.find(texts, "a"), 2);
  EXPECT_EQ(table.find(texts, "b"), 1);
  EXPECT_EQ(table.find(texts, ""), 3);
}

TEST(TextTable, EmptyTable) {
  Texts texts;
  TextTable table;
  EXPECT_EQ(table.find(texts, "x"), TextTable::kNone);
  EXPECT_EQ(table.insert_all(texts, {}), 0u);
  EXPECT_EQ(table.find(texts, "x"), TextTable::kNone);
}

TEST(Hash, SeesEveryByteAndTheSize) {
  std::string text(40, '\0');
  for (size_t size = 0; size <= 40; ++size) {
    uint64_t plain = hash_bytes(std::string_view(text).substr(0, size), 1);
    for (size_t i = 0; i < size; ++i) {
      std::string other = text.substr(0, size);
      other[i] = '\1';
      EXPECT_NE(hash_bytes(other, 1), plain) << size << " " << i;
    }
    EXPECT_NE(hash_bytes(std::string(size + 1, '\0'), 1), plain) << size;
    EXPECT_NE(hash_bytes(std::string_view(text).substr(0, size), 2), plain) << size;
  }
}

TEST(MergeTable, FirstRankOfAPairCounts) {
  MergeTable table;
  EXPECT_EQ(table.find(1, 2).rank, kNoMerge);
  table.reserve(3);
  table.insert(1, 2, {7, 3});
  table.insert(2, 1, {8, 4});
  table.insert(1, 2, {9, 5});
  EXPECT_EQ(table.find(1, 2).rank, 7u);
  EXPECT_EQ(table.find(1, 2).result, 3);
  EXPECT_EQ(table.find(2, 1).result, 4);
  EXPECT_EQ(table.find(-1, 2).rank, kNoMerge);
  EXPECT_EQ(table.find(-1, -1).rank, kNoMerge);
}

}  // namespace
}  // namespace stoker::text
