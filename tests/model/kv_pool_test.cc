#include "model/state/kv_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace stoker::model {
namespace {

std::unique_ptr<KvPool> make(Ledger& ledger, int64_t n_pages, uint64_t seed = 0) {
  KvLayout layout;
  layout.page_bytes = 4096;
  auto pool = KvPool::create(ledger, layout, {.n_pages = n_pages, .scatter_seed = seed});
  if (!pool) ADD_FAILURE() << pool.error().message;
  return std::move(*pool);
}

/// Reserves and "writes" positions, as a forward pass does: each byte of a touched page gets `mark`.
void append(Sequence& sequence, int64_t n, int mark) {
  const auto status = sequence.reserve(n);
  ASSERT_TRUE(status) << status.error().message;
  for (int64_t t = sequence.length() / 64; t * 64 < sequence.length() + n; ++t) std::memset(sequence.tile(t), mark, 64);
  sequence.advance(n);
}

TEST(KvPool, GivesEverythingBack) {
  Ledger ledger;
  {
    auto pool = make(ledger, 10);
    EXPECT_EQ(pool->n_free(), 10);
    Sequence a(*pool);
    append(a, 130, 1);
    EXPECT_EQ(pool->n_free(), 7);
    EXPECT_EQ(a.reserved(), 62);
    a.clear();
    EXPECT_EQ(pool->n_free(), 10);
    append(a, 1, 1);
    Sequence b = std::move(a);
    EXPECT_EQ(b.length(), 1);
  }
  EXPECT_EQ(ledger.used(), 0u);
}

TEST(KvPool, RefusesWithoutChangingAnything) {
  Ledger ledger;
  auto pool = make(ledger, 2);
  Sequence a(*pool);
  append(a, 100, 1);
  EXPECT_EQ(a.pages_wanted(28), 0);
  EXPECT_EQ(a.pages_wanted(29), 1);
  const auto status = a.reserve(29);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(status.error().message.find("0 free"), std::string::npos);
  EXPECT_EQ(a.length(), 100);
  EXPECT_TRUE(a.reserve(28));
}

TEST(KvPool, ForksShareUntilOneWrites) {
  Ledger ledger;
  auto pool = make(ledger, 10, 3);
  Sequence a(*pool);
  append(a, 100, 1);
  Sequence b = a.fork();
  EXPECT_EQ(pool->n_free(), 8);
  EXPECT_EQ(b.length(), 100);
  EXPECT_EQ(a.tile(1), b.tile(1));
  EXPECT_EQ(b.reserved(), 0);  // the page that is not full is shared
  EXPECT_EQ(b.pages_wanted(1), 1);
  append(b, 1, 2);
  EXPECT_NE(a.tile(1), b.tile(1));
  EXPECT_EQ(a.tile(0), b.tile(0));
  EXPECT_EQ(*a.tile(1), std::byte{1});
  EXPECT_EQ(pool->n_free(), 7);
  EXPECT_EQ(a.reserved(), 28);  // alone again
  a.clear();
  EXPECT_EQ(*b.tile(0), std::byte{1});
}

TEST(KvPool, ForkOfFullPagesCopiesNothing) {
  Ledger ledger;
  auto pool = make(ledger, 4);
  Sequence a(*pool);
  append(a, 128, 1);
  Sequence b = a.fork();
  EXPECT_EQ(b.pages_wanted(64), 1);
  append(b, 64, 2);
  EXPECT_EQ(a.tile(1), b.tile(1));
}

TEST(KvPool, TruncateFreesWholePages) {
  Ledger ledger;
  auto pool = make(ledger, 10);
  Sequence a(*pool);
  append(a, 200, 1);
  EXPECT_TRUE(a.truncate(64));
  EXPECT_EQ(pool->n_free(), 9);
  EXPECT_TRUE(a.truncate(1));
  EXPECT_EQ(pool->n_free(), 9);
  EXPECT_TRUE(a.truncate(0));
  EXPECT_EQ(pool->n_free(), 10);
  EXPECT_FALSE(a.truncate(1));
  EXPECT_FALSE(a.truncate(-1));
}

TEST(KvPool, CutIntoASharedPageCopiesOnWrite) {
  Ledger ledger;
  auto pool = make(ledger, 10);
  Sequence a(*pool);
  append(a, 128, 1);
  Sequence b = a.fork();
  ASSERT_TRUE(b.truncate(70));
  append(b, 1, 9);
  EXPECT_EQ(*a.tile(1), std::byte{1});
  EXPECT_EQ(*b.tile(1), std::byte{9});
}

TEST(KvPool, ScatteredPagesAreAllDifferent) {
  Ledger ledger;
  auto pool = make(ledger, 50, 17);
  Sequence a(*pool);
  ASSERT_TRUE(a.reserve(50 * 64));
  bool in_order = true;
  std::vector<const std::byte*> tiles(a.tiles(), a.tiles() + 50);
  for (size_t i = 1; i < tiles.size(); ++i) in_order = in_order && tiles[i] > tiles[i - 1];
  EXPECT_FALSE(in_order);
  std::sort(tiles.begin(), tiles.end());
  EXPECT_EQ(std::unique(tiles.begin(), tiles.end()), tiles.end());
}

TEST(KvPool, ChecksSizes) {
  Ledger limited(1 << 20);
  KvLayout layout;
  layout.page_bytes = 4096;
  EXPECT_EQ(KvPool::create(limited, layout, {.n_pages = 1000}).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(KvPool::create(limited, layout, {.n_pages = 0}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(KvPool::create(limited, layout, {.n_pages = INT64_MAX / 2}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(limited.used(), 0u);
}

/// A pool with four places for states, one byte of which tells them apart.
std::unique_ptr<KvPool> make_with_states(Ledger& ledger) {
  KvLayout layout;
  layout.page_bytes = 4096;
  layout.state_bytes = 64;
  auto pool = KvPool::create(ledger, layout, {.n_pages = 20, .n_states = 4});
  if (!pool) ADD_FAILURE() << pool.error().message;
  return std::move(*pool);
}

/// As a forward pass: reads the state, writes the next one.
void grow(Sequence& sequence, int64_t n) {
  const auto status = sequence.reserve(n);
  ASSERT_TRUE(status) << status.error().message;
  const int before = sequence.state() ? static_cast<int>(*sequence.state()) : 0;
  EXPECT_EQ(before, sequence.length());
  ASSERT_NE(sequence.next_state(), sequence.state());
  *sequence.next_state() = static_cast<std::byte>(before + n);
  sequence.advance(n);
}

TEST(KvPool, StatesAreNeverWrittenWhereTheyAreRead) {
  Ledger ledger;
  auto pool = make_with_states(ledger);
  EXPECT_FALSE(pool->layout().traits().truncates);
  Sequence a(*pool);
  EXPECT_EQ(a.state(), nullptr);
  EXPECT_EQ(a.states_wanted(1), 1);
  EXPECT_EQ(a.states_wanted(0), 0);
  for (const int64_t n : {3, 1, 5}) grow(a, n);
  EXPECT_EQ(pool->states()->n_free(), 2) << "the end and the state before the last call";
  EXPECT_EQ(a.states_wanted(1), 0);
  EXPECT_EQ(a.cut_point(8), 4);
  ASSERT_TRUE(a.reserve(2));  // a call that fails leaves it so
  EXPECT_EQ(a.cut_point(8), 0);
  EXPECT_EQ(*a.state(), std::byte{9});
  grow(a, 1);
  ASSERT_TRUE(a.truncate(9));
  EXPECT_EQ(*a.state(), std::byte{9});
  EXPECT_EQ(pool->states()->n_free(), 3);
  Sequence moved = std::move(a);
  grow(moved, 1);
  EXPECT_EQ(moved.length(), 10);
  moved.clear();
  EXPECT_EQ(pool->states()->n_free(), 4);
}

TEST(KvPool, ForksAndCheckpointsKeepStates) {
  Ledger ledger;
  auto pool = make_with_states(ledger);
  Sequence a(*pool);
  grow(a, 3);
  a.checkpoint();
  const Sequence snapshot = a.fork();
  EXPECT_EQ(pool->states()->n_free(), 3);
  grow(a, 3), grow(a, 3), grow(a, 3);
  EXPECT_EQ(pool->states()->n_free(), 1) << "checkpoint, previous, end";
  EXPECT_EQ(a.cut_point(8), 3);
  EXPECT_EQ(a.cut_point(2), 0);
  const Status refused = a.truncate(8);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(a.length(), 12);
  Sequence b = snapshot.fork();
  grow(b, 1);
  EXPECT_EQ(pool->states()->n_free(), 0);
  Sequence c = snapshot.fork();
  const Status full = c.reserve(1);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(full.error().message.find("all 4 places for recurrent states are taken"), std::string::npos);
  a.forget_checkpoints();  // the snapshot still holds it
  EXPECT_EQ(pool->states()->n_free(), 0);
  ASSERT_TRUE(a.truncate(0));
  EXPECT_EQ(pool->states()->n_free(), 2);
  grow(c, 2);
  EXPECT_EQ(*snapshot.state(), std::byte{3});
}

}  // namespace
}  // namespace stoker::model
