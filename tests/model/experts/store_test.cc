// The store over a disk that the test drives: who gets which place when, and what is read.
#include "model/experts/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <random>

#include "tests/model/experts/fake_disk.h"

namespace stoker::model {
namespace {

using namespace testing;
using Take = ExpertRequest::Take;
using Order = ExpertRequest::Order;
using Kind = EvictionPolicy::Kind;
using Ids = std::vector<int32_t>;

constexpr auto kLong = std::chrono::seconds(30);
constexpr auto kShort = std::chrono::milliseconds(20);

FakeExperts one_layer(int64_t n_experts = 16) { return {n_experts, 4, {{}}}; }
ExpertStore::Options slots(uint64_t n, Kind policy = Kind::kRecency, int lanes = 0) {
  return {.budget_bytes = n * one_layer().expert_bytes(), .lanes = lanes, .policy = policy};
}

/// Asks for experts, gets them and gives them back.
void use(FakeStore& fake, const Ids& ids, size_t layer = 0) {
  ExpertRequest request(*fake.store);
  request.start(layer, ids, {}, Order::kByExpert);
  ASSERT_TRUE(take_all(fake, request, layer, ids));
}

/// How many of the experts have a place, without waiting; they are taken.
size_t placed(ExpertRequest& request) {
  size_t n = 0;
  while (request.take(Take::kAny) >= 0) ++n;
  return n;
}

/// Until the expert is there: given back before that, its place becomes free only later.
void wait_all(ExpertRequest& request, int32_t i) {
  for (Projection p : kAllProjections) ASSERT_NE(request.wait(i, p), nullptr);
}

TEST(Store, OneReadHoweverManyAsk) {
  FakeStore fake(one_layer(), slots(4));
  fake.disk.hold(true);
  std::deque<ExpertRequest> requests;
  for (int i = 0; i < 5; ++i) {
    const Ids ids = i % 2 == 0 ? Ids{3, 7} : Ids{7, 3};
    requests.emplace_back(*fake.store).start(0, ids, {}, Order::kByExpert);
  }
  EXPECT_EQ(fake.disk.held(6).size(), 6u);
  fake.disk.hold(false);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(take_all(fake, requests[i], 0, i % 2 == 0 ? Ids{3, 7} : Ids{7, 3}));
  }
  const auto log = fake.disk.log();
  EXPECT_EQ(log.size(), 6u);
  EXPECT_EQ(std::set<FakeDisk::Read>(log.begin(), log.end()).size(), 6u);
  const auto stats = fake->stats();
  EXPECT_EQ(stats.requests, 10u);
  EXPECT_EQ(stats.misses, 2u);
  EXPECT_EQ(stats.joined, 8u);
  EXPECT_EQ(stats.bytes_read, 2 * fake.experts.file_bytes());
  EXPECT_EQ(stats.resident_bytes, 2 * fake.experts.expert_bytes());
  use(fake, {7});
  EXPECT_EQ(fake->stats().hits, 1u);
  EXPECT_EQ(fake.disk.log().size(), 6u);
}

TEST(Store, AMatrixIsThereAsSoonAsItsBytesAre) {
  Ids order = {0, 1, 2};
  do {
    FakeStore fake(one_layer(), slots(4));
    fake.disk.hold(true);
    ExpertRequest request(*fake.store);
    request.start(0, Ids{5}, {}, Order::kByExpert);
    EXPECT_EQ(request.take(Take::kReady), -1);
    ASSERT_EQ(request.take(Take::kAny), 0);
    fake.disk.held(3);
    std::vector<std::future<const std::byte*>> waits;
    for (Projection p : kAllProjections) {
      waits.push_back(std::async(std::launch::async, [&request, p] { return request.wait(0, p); }));
    }
    for (size_t i = 0; i < order.size(); ++i) {
      const auto p = static_cast<Projection>(order[i]);
      fake.disk.finish(fake.experts.read_of(0, 5, p));
      ASSERT_EQ(waits[static_cast<size_t>(p)].wait_for(kLong), std::future_status::ready);
      EXPECT_TRUE(fake.experts.is(waits[static_cast<size_t>(p)].get(), 0, 5, p));
      for (size_t later = i + 1; later < order.size(); ++later) {
        EXPECT_EQ(waits[static_cast<size_t>(order[later])].wait_for(std::chrono::milliseconds(2)),
                  std::future_status::timeout);
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Store, AMatrixOfSeveralPiecesIsThereWithTheLast) {
  FakeStore fake({4, 2, {{.ff = 128, .dim = 4096}}}, {.budget_bytes = 16u << 20});
  fake.disk.hold(true);
  ExpertRequest request(*fake.store);
  request.start(0, Ids{2}, {}, Order::kByProjection);
  ASSERT_EQ(request.take(Take::kAny), 0);
  auto wait = std::async(std::launch::async, [&] { return request.wait(0, Projection::kGate); });
  auto reads = fake.disk.held(6);
  std::erase_if(reads, [&](const auto& read) { return read.tensor->name != "blk.0.ffn_gate_exps.weight"; });
  ASSERT_EQ(reads.size(), 3u);
  for (size_t i : {1, 2, 0}) {
    EXPECT_EQ(wait.wait_for(kShort), std::future_status::timeout);
    fake.disk.finish(reads[i]);
  }
  EXPECT_TRUE(fake.experts.is(wait.get(), 0, 2, Projection::kGate));
  fake.disk.hold(false);
  EXPECT_TRUE(fake.experts.is(request.wait(0, Projection::kDown), 0, 2, Projection::kDown));
  wait_all(request, 0);
  request.finish();
  EXPECT_EQ(fake->stats().bytes_read, fake.experts.file_bytes());
}

TEST(Store, TypesWithBlocks) {
  using gguf::TensorType;
  for (TensorType type : {TensorType::kMXFP4, TensorType::kQ8_0, TensorType::kQ4K, TensorType::kF16}) {
    FakeStore fake({4, 2, {{.type = type, .down_type = TensorType::kQ8_0, .ff = 32 * 3, .dim = 512}}}, {.lanes = 2});
    use(fake, {3, 0, 1});
  }
}

TEST(Store, ReadsInTheOrderOfUse) {
  using P = Projection;
  const std::vector<std::pair<int32_t, P>> by_expert = {{9, P::kGate}, {9, P::kUp}, {9, P::kDown},
                                                        {4, P::kGate}, {4, P::kUp}, {4, P::kDown}};
  const std::vector<std::pair<int32_t, P>> by_projection = {{9, P::kGate}, {9, P::kUp},   {4, P::kGate},
                                                            {4, P::kUp},   {9, P::kDown}, {4, P::kDown}};
  for (Order order : {Order::kByExpert, Order::kByProjection}) {
    FakeStore fake(one_layer(), slots(4, Kind::kRecency, 1));
    ExpertRequest request(*fake.store);
    request.start(0, Ids{9, 4}, {}, order);
    EXPECT_TRUE(take_all(fake, request, 0, Ids{9, 4}));
    std::vector<FakeDisk::Read> want;
    for (const auto& [expert, p] : order == Order::kByExpert ? by_expert : by_projection) {
      want.push_back(fake.experts.read_of(0, expert, p));
    }
    EXPECT_EQ(fake.disk.log(), want);
  }
}

TEST(Store, APlaceIsReservedBeforeItsReads) {
  FakeStore fake(one_layer(), slots(3));
  ASSERT_EQ(fake->n_slots(), 3);
  fake.disk.hold(true);
  ExpertRequest a(*fake.store), b(*fake.store);
  a.start(0, Ids{0, 1}, {}, Order::kByExpert);
  b.start(0, Ids{2, 3, 4}, {}, Order::kByExpert);
  EXPECT_TRUE(a.all_placed());
  EXPECT_FALSE(b.all_placed());
  EXPECT_EQ(placed(b), 1u);
  std::set<int64_t> begun;
  for (const auto& read : fake.disk.held(8)) begun.insert(fake.experts.key_of(read));
  EXPECT_EQ(begun, (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(fake->stats().in_flight_peak, 3u);
  fake.disk.hold(false);
  EXPECT_TRUE(take_all(fake, a, 0, Ids{0, 1}));
  b.finish();
}

TEST(Store, LeasedExpertsStay) {
  FakeStore fake(one_layer(), slots(3));
  ExpertRequest held(*fake.store);
  held.start(0, Ids{1, 2}, {}, Order::kByExpert);
  ASSERT_EQ(placed(held), 2u);
  for (int32_t i : {0, 1}) wait_all(held, i);
  for (int32_t e = 3; e < 16; ++e) use(fake, {e});
  for (int32_t i : {0, 1}) {
    for (Projection p : kAllProjections) EXPECT_TRUE(fake.experts.is(held.data(i, p), 0, i + 1, p));
  }
  EXPECT_EQ(fake->stats().evictions, 12u);
  held.release(1);
  use(fake, {1, 2});
  EXPECT_EQ(fake->stats().hits, 2u);
  for (int32_t e = 3; e < 16; ++e) use(fake, {e});
  EXPECT_TRUE(fake.experts.is(held.data(0, Projection::kDown), 0, 1, Projection::kDown));
}

TEST(Store, ARequestDoesNotEvictWhatItWants) {
  FakeStore fake(one_layer(), slots(3, Kind::kCounts));
  // 1 and 2 are popular, 0 is not, and would go first.
  for (int i = 0; i < 5; ++i) use(fake, {1, 2});
  use(fake, {0});
  const auto before = fake->stats();
  use(fake, {5, 0});
  const auto stats = fake->stats();
  EXPECT_EQ(stats.hits - before.hits, 1u);
  EXPECT_EQ(stats.misses - before.misses, 1u);
}

TEST(Store, LessThanOneExpertPassesThrough) {
  for (uint64_t budget : {uint64_t{0}, one_layer().expert_bytes() - 1, one_layer().expert_bytes()}) {
    FakeStore fake(one_layer(), {.budget_bytes = budget});
    const Ids all = {4, 0, 1, 5, 2, 3, 6, 7, 15};
    for (int i = 0; i < 3; ++i) use(fake, all);
    const auto stats = fake->stats();
    EXPECT_EQ(stats.misses, 3 * all.size());
    EXPECT_EQ(stats.pass_throughs, stats.misses);
    EXPECT_EQ(stats.hits + stats.joined + stats.evictions + stats.resident_bytes, 0u);
  }
}

TEST(Store, FirstComeFirstServed) {
  FakeStore fake(one_layer(), slots(2));
  ExpertRequest a(*fake.store), b(*fake.store), c(*fake.store);
  a.start(0, Ids{0, 1}, {}, Order::kByExpert);
  ASSERT_EQ(placed(a), 2u);
  b.start(0, Ids{2, 3}, {}, Order::kByExpert);
  c.start(0, Ids{4, 5}, {}, Order::kByExpert);
  EXPECT_EQ(b.take(Take::kAny), -1);
  for (int32_t i : {0, 1}) wait_all(a, i);
  // What is there is had at once, whoever waits.
  ExpertRequest hit(*fake.store);
  hit.start(0, Ids{1}, {}, Order::kByExpert);
  EXPECT_EQ(placed(hit), 1u);
  hit.finish();
  a.release(1);
  EXPECT_EQ(placed(b), 1u);
  EXPECT_EQ(placed(c), 0u);
  a.release(0);
  EXPECT_EQ(placed(b), 1u);
  EXPECT_EQ(placed(c), 0u);
  for (int32_t i : {0, 1}) wait_all(b, i);
  b.release(0);
  EXPECT_EQ(placed(c), 1u);
  b.finish();
  EXPECT_EQ(placed(c), 1u);
}

TEST(Store, WhatWasReadAheadIsForeseen) {
  FakeStore fake(one_layer(), slots(4));
  ExpertRequest ahead(*fake.store);
  ahead.start(0, Ids{0, 1, 2}, {}, Order::kAhead);
  EXPECT_EQ(fake->stats().requests, 0u);
  use(fake, {2, 1, 9});
  use(fake, {2});
  ahead.finish();
  const auto stats = fake->stats();
  EXPECT_EQ(stats.requests, 4u);
  EXPECT_EQ(stats.foreseen, 2u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.ahead, 3u);
}

TEST(Store, WhatWasAskedForAheadWaitsLongest) {
  FakeStore fake(one_layer(), slots(2));
  ExpertRequest a(*fake.store), ahead(*fake.store), b(*fake.store);
  a.start(0, Ids{0, 1}, {}, Order::kByExpert);
  ASSERT_EQ(placed(a), 2u);
  ahead.start(0, Ids{5, 6}, {}, Order::kAhead);
  b.start(0, Ids{2}, {}, Order::kByExpert);
  for (int32_t i : {0, 1}) wait_all(a, i);
  while (fake->stats().in_flight > 0) std::this_thread::yield();
  a.release(0);
  EXPECT_EQ(placed(b), 1u);
  a.release(1);
  EXPECT_EQ(fake->stats().ahead, 1u);
  ahead.finish();
}

/// The experts in the order in which their reads have begun.
Ids order_of(const FakeStore& fake) {
  Ids order;
  for (const auto& read : fake.disk.log()) {
    const auto key = static_cast<int32_t>(fake.experts.key_of(read));
    if (order.empty() || order.back() != key) order.push_back(key);
  }
  return order;
}

TEST(Store, WhatIsWantedOvertakesReadsAhead) {
  FakeStore fake(one_layer(), slots(8, Kind::kRecency, 1));
  fake.disk.hold(true);
  ExpertRequest ahead(*fake.store), other(*fake.store);
  ahead.start(0, Ids{0, 1, 2}, {}, Order::kAhead);
  fake.disk.held(1);
  other.start(0, Ids{7, 8}, {}, Order::kByProjection);  // another runner's, or the same one's
  fake.disk.hold(false);
  EXPECT_TRUE(take_all(fake, other, 0, Ids{7, 8}));
  while (fake->stats().in_flight > 0) std::this_thread::yield();
  EXPECT_EQ(order_of(fake), (Ids{0, 7, 8, 7, 8, 0, 1, 2}));  // of 0 one matrix was on its way
  EXPECT_EQ(fake->stats().misses, 2u);
}

TEST(Store, WhatMayBeWantedLaterIsReadWhenNothingElseIs) {
  FakeStore fake(one_layer(), slots(8, Kind::kRecency, 1));
  fake.disk.hold(true);
  ExpertRequest ahead(*fake.store), later(*fake.store), request(*fake.store);
  ahead.start(0, Ids{0, 1}, {}, Order::kAhead);
  later.start(0, Ids{5, 1, 6}, {}, Order::kLater);
  fake.disk.held(1);
  EXPECT_EQ(fake->stats().ahead, 2u);  // 5 and 6 have no places yet
  request.start(0, Ids{8}, {}, Order::kByExpert);
  fake.disk.hold(false);
  EXPECT_TRUE(take_all(fake, request, 0, Ids{8}));
  while (fake->stats().ahead < 4 || fake->stats().in_flight > 0) std::this_thread::yield();
  EXPECT_EQ(order_of(fake), (Ids{0, 8, 0, 1, 5, 6}));
  use(fake, {5, 6});
  EXPECT_EQ(fake->stats().foreseen, 2u);
}

TEST(Store, WhatIsGivenUpBeforeTheDiskIsIdleEvictsNothing) {
  FakeStore fake(one_layer(), slots(2, Kind::kRecency, 1));
  use(fake, {0, 1});
  fake.disk.hold(true);
  ExpertRequest request(*fake.store), later(*fake.store), other(*fake.store);
  request.start(0, Ids{2}, {}, Order::kByExpert);
  fake.disk.held(1);
  later.start(0, Ids{3}, {}, Order::kLater);
  later.finish();
  later.start(0, Ids{1, 4}, {}, Order::kLater);  // leases 1, and finds no room for 4
  fake.disk.hold(false);
  ASSERT_EQ(placed(request), 1u);
  wait_all(request, 0);
  while (fake->stats().in_flight > 0) std::this_thread::yield();
  other.start(0, Ids{5}, {}, Order::kByExpert);
  EXPECT_EQ(placed(other), 0u);
  request.release(0);
  EXPECT_EQ(placed(other), 1u);  // before what may be wanted later
  EXPECT_EQ(fake->stats().ahead, 0u);
  EXPECT_EQ(fake->stats().evictions, 2u);
  later.finish();
}

TEST(Store, WhatTurnsOutToBeWantedOvertakesToo) {
  FakeStore fake(one_layer(), slots(8, Kind::kRecency, 1));
  fake.disk.hold(true);
  ExpertRequest ahead(*fake.store), request(*fake.store);
  ahead.start(0, Ids{0, 1, 2, 3}, {}, Order::kAhead);
  fake.disk.held(1);
  request.start(0, Ids{2, 9}, {}, Order::kByExpert);
  ahead.finish();  // the others are wanted by nobody
  fake.disk.hold(false);
  EXPECT_TRUE(take_all(fake, request, 0, Ids{2, 9}));
  request.finish();
  while (fake->stats().in_flight > 0) std::this_thread::yield();
  EXPECT_EQ(order_of(fake), (Ids{0, 2, 9}));
  EXPECT_EQ(fake->stats().foreseen, 1u);
  EXPECT_EQ(fake->stats().cancelled, 3u);
}

TEST(Store, ReadsAreReplayed) {
  FakeStore fake(one_layer(), slots(4));
  use(fake, {0, 1});
  fake->remember_reads(true);
  use(fake, {1, 2, 3});
  const auto before = fake.disk.log();
  const ExpertStore::Replay replay = fake->replay_reads();
  EXPECT_EQ(replay.bytes, 2 * fake.experts.file_bytes());
  EXPECT_GT(replay.ns, 0u);
  const auto log = fake.disk.log();
  ASSERT_EQ(log.size(), before.size() + 6);
  Ids others;
  for (auto read = log.end() - 6; read != log.end(); ++read)
    others.push_back(static_cast<int32_t>(fake.experts.key_of(*read)));
  std::sort(others.begin(), others.end());
  EXPECT_EQ(others, (Ids{10, 10, 10, 11, 11, 11}));  // 2 and 3 were read, of 16
  EXPECT_EQ(fake->replay_reads().bytes, 0u);         // once
  use(fake, {2, 3});
  EXPECT_EQ(fake->stats().misses, 4u);
  EXPECT_EQ(fake->stats().bytes_read, 4 * fake.experts.file_bytes());
}

TEST(Store, WhatAQueueRefusesIsReadOtherwise) {
  const Watchdog watchdog(60);
  for (int n : {1, 2, 3}) {
    for (int i = 0; i < 20; ++i) {  // Ends at once after a read of either kind.
      FakeStore fake(one_layer(), slots(4));
      fake.disk.refuse_every(n);
      use(fake, {0, 1, static_cast<int32_t>(2 + i % 9)});
      use(fake, {12});
      EXPECT_EQ(fake->stats().bytes_read, 4 * fake.experts.file_bytes());
    }
  }
}

TEST(Store, AReadMayEndBeforeItsBeginningReturns) {
  const Watchdog watchdog(60);
  for (int i = 0; i < 20; ++i) {  // Ends while one packer is still beginning, and the other has nothing to wait for.
    FakeStore fake(one_layer(), slots(4));
    fake.disk.return_late(std::chrono::milliseconds(2));
    use(fake, {0, 1, 2});
    use(fake, {3});
  }
}

TEST(Store, TheDisksTimeIsMeasured) {
  FakeStore fake(one_layer(), slots(4));
  fake.disk.slow_down(std::chrono::milliseconds(5));
  use(fake, {0});
  const auto stats = fake->stats();
  EXPECT_GE(stats.disk_ns, 5'000'000u);
  EXPECT_GE(stats.read_ns, 15'000'000u);  // three at once
  EXPECT_GE(stats.read_ns, stats.disk_ns);
  EXPECT_GT(stats.pack_ns, 0u);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(fake->stats().disk_ns, stats.disk_ns);
}

TEST(Store, AheadIsGivenUpForWhatIsWanted) {
  for (uint64_t n : {uint64_t{0}, uint64_t{3}}) {
    FakeStore fake(one_layer(), slots(n));
    fake.disk.hold(true);
    ExpertRequest ahead(*fake.store), request(*fake.store);
    Ids all(16);
    std::iota(all.begin(), all.end(), 0);
    for (int i = 0; i < 3; ++i) {
      ahead.start(0, all, {}, Order::kAhead);
      request.start(0, Ids{1, 12, 13}, {}, Order::kByExpert);
      ahead.finish();
      fake.disk.hold(false);
      EXPECT_TRUE(take_all(fake, request, 0, Ids{1, 12, 13}));
      request.finish();
    }
    const auto stats = fake->stats();
    EXPECT_EQ(stats.requests, stats.hits + stats.joined + stats.foreseen + stats.misses);
  }
}

TEST(Store, NobodyStarves) {
  // Each holds one while it waits for no other: all get on, in turns.
  const Watchdog watchdog(60);
  FakeStore fake(one_layer(), slots(2));
  std::deque<ExpertRequest> requests;
  const Ids ids[] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 0}, {1, 2, 3}};
  for (const Ids& wanted : ids) requests.emplace_back(*fake.store).start(0, wanted, {}, Order::kByExpert);
  std::vector<std::future<bool>> done;
  for (size_t i = 0; i < requests.size(); ++i) {
    done.push_back(std::async(std::launch::async, [&, i] { return take_all(fake, requests[i], 0, ids[i]); }));
  }
  for (auto& one : done) EXPECT_TRUE(one.get());
}

TEST(Store, SizesHaveTheirOwnSlots) {
  using gguf::TensorType;
  const std::vector<FakeExperts::Shape> layers = {{}, {.type = TensorType::kQ8_0, .down_type = TensorType::kQ8_0}, {}};
  const FakeExperts shapes(8, 2, layers);
  ASSERT_GT(shapes.expert_bytes(0), shapes.expert_bytes(1));
  FakeStore fake(FakeExperts(8, 2, layers), {.budget_bytes = shapes.index().bytes() / 2});
  EXPECT_EQ(fake->n_slots(), 12);
  for (size_t layer : {0, 1, 2}) use(fake, {0, 1, 2, 3}, layer);
  EXPECT_EQ(fake->stats().evictions, 0u);
  for (int32_t e = 4; e < 8; ++e) use(fake, {e}, 1);  // evicts only its own size
  use(fake, {0, 1, 2, 3}, 0), use(fake, {0, 1, 2, 3}, 2);
  EXPECT_EQ(fake->stats().hits, 8u);
  EXPECT_EQ(fake->stats().evictions, 4u);
  EXPECT_EQ(fake->stats().resident_bytes, shapes.index().bytes() / 2);
}

TEST(Store, TheSlotsAreWhatTheBudgetHolds) {
  using gguf::TensorType;
  for (int64_t n_experts : {7, 49, 128}) {
    const FakeExperts experts(n_experts, 2, {{}});
    const auto slab = [&](uint64_t budget) { return ExpertStore::memory(experts.index(), budget)[0].bytes; };
    for (uint64_t n = 2; n <= static_cast<uint64_t>(n_experts); ++n) {
      EXPECT_EQ(slab(n * experts.expert_bytes()), n * experts.expert_bytes());
      EXPECT_EQ(slab(n * experts.expert_bytes() - 1), std::max<uint64_t>(2, n - 1) * experts.expert_bytes());
    }
    EXPECT_EQ(slab(~uint64_t{0}), experts.index().bytes());
    EXPECT_EQ(slab(0), 2 * experts.expert_bytes());
  }
  const FakeExperts mixed(16, 2, {{}, {.type = TensorType::kQ8_0}, {.ff = 64}});
  const uint64_t smallest = 6 * mixed.expert_bytes(2);
  for (uint64_t budget = smallest; budget < mixed.index().bytes(); budget += 1000) {
    const uint64_t slab = ExpertStore::memory(mixed.index(), budget)[0].bytes;
    EXPECT_LE(slab, budget);
    EXPECT_GT(slab + mixed.expert_bytes(2), budget);  // what is left is less than an expert
  }
}

TEST(Store, TheLedgerIsCharged) {
  const FakeExperts experts = one_layer();
  uint64_t charged = 0;
  for (const auto& line : ExpertStore::memory(experts.index(), slots(4).budget_bytes)) {
    charged += Buffer::charged(line.bytes);
  }
  {
    FakeStore fake(one_layer(), slots(4));
    EXPECT_EQ(fake.ledger.used(), charged);
    fake.store.reset();
    EXPECT_EQ(fake.ledger.used(), 0u);
  }
  FakeStore fake(one_layer(), slots(4));
  Ledger small(charged - 1);
  FakeDisk disk;
  const auto refused = ExpertStore::open(*fake.file, experts.index(), kernels::scalar_table(), small,
                                         {.budget_bytes = slots(4).budget_bytes, .reader = &disk});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(refused.error().message.find("expert"), std::string::npos) << refused.error().message;
  EXPECT_EQ(small.used(), 0u);
}

TEST(Store, TheFiguresAddUp) {
  FakeStore fake({16, 4, {{}, {}}}, slots(10));
  std::mt19937 random(3);
  uint64_t requests = 0;
  for (int i = 0; i < 300; ++i) {
    Ids ids(16);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random);
    ids.resize(1 + random() % 8);
    requests += ids.size();
    use(fake, ids, random() % 2);
    fake->end_call(1);
  }
  const auto stats = fake->stats();
  EXPECT_EQ(stats.requests, requests);
  EXPECT_EQ(stats.hits + stats.joined + stats.misses, requests);
  EXPECT_EQ(stats.resident_bytes, (stats.misses - stats.evictions) * fake.experts.expert_bytes());
  EXPECT_EQ(stats.resident_bytes, 10 * fake.experts.expert_bytes());
  EXPECT_EQ(stats.bytes_read, stats.misses * fake.experts.file_bytes());
  EXPECT_EQ(stats.bytes_read, fake.disk.bytes_read());
  EXPECT_EQ(stats.errors + stats.cancelled + stats.pass_throughs, 0u);
  EXPECT_GT(stats.hits, requests / 5);
}

}  // namespace
}  // namespace stoker::model
