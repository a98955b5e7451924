// Reads that fail, and requests that are given up: who hears of it, and that nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "base/str_cat.h"
#include "tests/model/experts/fake_disk.h"

namespace stoker::model {
namespace {

using namespace testing;
using Take = ExpertRequest::Take;
using Order = ExpertRequest::Order;
using Ids = std::vector<int32_t>;

constexpr uint64_t kSlots = 4;

FakeExperts one_layer() { return {16, 4, {{}}}; }
ExpertStore::Options slots(int lanes = 0) {
  return {
      .budget_bytes = kSlots * one_layer().expert_bytes(), .lanes = lanes, .policy = EvictionPolicy::Kind::kRecency};
}
Error broken(const FakeDisk::Read& read) {
  return Error{ErrorCode::kIo, str_cat("tensor '", read.tensor->name, "': Input/output error")};
}

/// That all slots can be had at once, and what is read is right: no lease and no read is left over.
void expect_all_free(FakeStore& fake) {
  while (fake->stats().in_flight > 0) std::this_thread::yield();  // what was given up
  const Ids ids = {12, 13, 14, 15};
  {
    ExpertRequest request(*fake.store);
    request.start(0, ids, {}, Order::kByExpert);
    EXPECT_TRUE(request.all_placed());
    EXPECT_TRUE(take_all(fake, request, 0, ids));
  }
  const auto stats = fake->stats();
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.resident_bytes, kSlots * fake.experts.expert_bytes());
  EXPECT_EQ(stats.requests, stats.hits + stats.joined + stats.misses);
  EXPECT_EQ(stats.bytes_read, fake.disk.bytes_read());
}

/// Takes the experts in order and gives back which of them could not be had.
Ids failed_of(FakeStore& fake, ExpertRequest& request, const Ids& ids, std::string* message) {
  Ids failed;
  for (int32_t i; (i = request.take(Take::kWait)) >= 0; request.release(i)) {
    const int32_t id = ids[static_cast<size_t>(i)];
    bool fine = true;
    for (Projection p : kAllProjections) {
      const std::byte* data = request.wait(i, p);
      fine = fine && data;
      // Of one that fails elsewhere too, what is handed out is right.
      EXPECT_TRUE(!data || fake.experts.is(data, 0, id, p));
    }
    if (fine) continue;
    failed.push_back(id);
    *message = request.error(i).message;
    EXPECT_EQ(request.error(i).code, ErrorCode::kIo);
  }
  return failed;
}

TEST(StoreFailure, TheNthReadFailsThoseWhoNeedIt) {
  const Ids ids = {5, 2, 9};
  for (Order order : {Order::kByExpert, Order::kByProjection}) {
    for (int lanes : {1, 8}) {
      for (int n = 0; n < 9; ++n) {
        FakeStore fake(one_layer(), slots(lanes));
        int count = 0;
        FakeDisk::Read bad;
        fake.disk.judge([&](const FakeDisk::Read& read) -> std::optional<Error> {
          if (count++ != n) return std::nullopt;
          bad = read;
          return broken(read);
        });
        ExpertRequest request(*fake.store);
        request.start(0, ids, {}, order);
        std::string message;
        const Ids failed = failed_of(fake, request, ids, &message);
        ASSERT_NE(bad.tensor, nullptr);
        EXPECT_EQ(failed, Ids{static_cast<int32_t>(fake.experts.key_of(bad))});
        EXPECT_NE(message.find(bad.tensor->name), std::string::npos) << message;
        EXPECT_TRUE(request.all_taken());
        request.finish();
        EXPECT_EQ(fake->stats().errors, 1u);
        // Nothing of it was kept: it is read again, and now well.
        const uint64_t misses = fake->stats().misses;
        request.start(0, ids, {}, order);
        EXPECT_TRUE(take_all(fake, request, 0, ids));
        EXPECT_EQ(fake->stats().misses, misses + 1);
        expect_all_free(fake);
      }
    }
  }
}

TEST(StoreFailure, AllWhoWaitForItHear) {
  FakeStore fake(one_layer(), slots());
  fake.disk.hold(true);
  ExpertRequest a(*fake.store), b(*fake.store), other(*fake.store);
  a.start(0, Ids{3}, {}, Order::kByExpert);
  b.start(0, Ids{1, 3}, {}, Order::kByExpert);
  other.start(0, Ids{1}, {}, Order::kByExpert);
  fake.disk.held(6);
  const auto bad = fake.experts.read_of(0, 3, Projection::kUp);
  fake.disk.finish(bad, broken(bad));
  fake.disk.hold(false);
  std::string message_a, message_b;
  EXPECT_EQ(failed_of(fake, a, {3}, &message_a), Ids{3});
  EXPECT_EQ(failed_of(fake, b, {1, 3}, &message_b), Ids{3});
  EXPECT_EQ(message_a, message_b);
  EXPECT_TRUE(take_all(fake, other, 0, Ids{1}));
  EXPECT_EQ(fake->stats().errors, 1u);
  expect_all_free(fake);
}

TEST(StoreFailure, AFailedReadIsTriedAgainWhileItsLeaseIsHeld) {
  FakeStore fake(one_layer(), slots());
  fake.disk.judge([](const FakeDisk::Read& read) { return std::optional(broken(read)); });
  ExpertRequest a(*fake.store), b(*fake.store);
  a.start(0, Ids{3}, {}, Order::kByExpert);
  ASSERT_EQ(a.take(Take::kAny), 0);
  for (Projection p : kAllProjections) EXPECT_EQ(a.wait(0, p), nullptr);
  fake.disk.judge({});
  while (fake->stats().in_flight > 0) std::this_thread::yield();  // the last piece's bookkeeping
  b.start(0, Ids{3}, {}, Order::kByExpert);
  EXPECT_TRUE(take_all(fake, b, 0, Ids{3}));
  EXPECT_NE(a.error(0).message.find("blk.0.ffn"), std::string::npos);
  a.finish(), b.finish();
  ExpertRequest c(*fake.store);
  c.start(0, Ids{3}, {}, Order::kByExpert);
  EXPECT_TRUE(take_all(fake, c, 0, Ids{3}));
  EXPECT_EQ(fake->stats().hits, 1u);
  expect_all_free(fake);
}

TEST(StoreFailure, AFailureWithPassThroughs) {
  FakeStore fake(one_layer(), {.budget_bytes = 0});
  const Ids ids = {1, 2, 3, 4};
  const auto bad = fake.experts.read_of(0, 3, Projection::kDown);
  fake.disk.judge([&](const FakeDisk::Read& read) { return read == bad ? std::optional(broken(read)) : std::nullopt; });
  ExpertRequest request(*fake.store);
  std::string message;
  for (int i = 0; i < 3; ++i) {
    request.start(0, ids, {}, Order::kByExpert);
    EXPECT_EQ(failed_of(fake, request, ids, &message), Ids{3});
    request.finish();
  }
  const auto stats = fake->stats();
  EXPECT_EQ(stats.errors, 3u);
  EXPECT_EQ(stats.pass_throughs, 9u);
  EXPECT_EQ(stats.resident_bytes, 0u);
  EXPECT_EQ(stats.in_flight, 0u);
}

TEST(StoreFailure, WhatNobodyWantsAnyMoreIsNotRead) {
  FakeStore fake(one_layer(), slots(1));
  fake.disk.hold(true);
  ExpertRequest other(*fake.store);
  {
    ExpertRequest request(*fake.store);
    request.start(0, Ids{0, 1, 2}, {}, Order::kByExpert);
    other.start(0, Ids{1, 7}, {}, Order::kByExpert);
    fake.disk.held(1);
  }
  fake.disk.hold(false);
  EXPECT_TRUE(take_all(fake, other, 0, Ids{1, 7}));
  expect_all_free(fake);
  std::set<int64_t> read;
  int n_of_0 = 0;
  for (const auto& one : fake.disk.log()) {
    read.insert(fake.experts.key_of(one));
    n_of_0 += fake.experts.key_of(one) == 0;
  }
  EXPECT_EQ(read, (std::set<int64_t>{0, 1, 7, 12, 13, 14, 15}));
  EXPECT_EQ(n_of_0, 1);  // that was on its way
  EXPECT_EQ(fake->stats().cancelled, 2u);
  EXPECT_EQ(fake->stats().joined, 1u);
}

TEST(StoreFailure, WantedAgainWhileItIsBeingGivenUp) {
  for (int n_done : {0, 1, 2}) {
    FakeStore fake(one_layer(), slots());
    fake.disk.hold(true);
    auto first = std::make_unique<ExpertRequest>(*fake.store);
    first->start(0, Ids{6}, {}, Order::kByExpert);
    fake.disk.held(3);
    fake.disk.finish_next(static_cast<size_t>(n_done));
    first.reset();
    ExpertRequest again(*fake.store);
    again.start(0, Ids{6, 8}, {}, Order::kByExpert);
    auto done = std::async(std::launch::async, [&] { return take_all(fake, again, 0, Ids{6, 8}); });
    fake.disk.hold(false);
    EXPECT_TRUE(done.get());
    again.finish();
    expect_all_free(fake);
  }
}

TEST(StoreFailure, CancelledWhileItWaitsForAPlace) {
  FakeStore fake(one_layer(), slots());
  fake.disk.hold(true);
  ExpertRequest a(*fake.store);
  a.start(0, Ids{0, 1, 2, 3}, {}, Order::kByExpert);
  {
    ExpertRequest b(*fake.store);
    b.start(0, Ids{4, 5, 0}, {}, Order::kByExpert);
  }
  ExpertRequest c(*fake.store);
  c.start(0, Ids{6}, {}, Order::kByExpert);
  EXPECT_EQ(c.take(Take::kAny), -1);
  fake.disk.hold(false);
  EXPECT_TRUE(take_all(fake, a, 0, Ids{0, 1, 2, 3}));
  EXPECT_TRUE(take_all(fake, c, 0, Ids{6}));
  a.finish(), c.finish();
  expect_all_free(fake);
  for (const auto& read : fake.disk.log()) {
    const int64_t key = fake.experts.key_of(read);
    EXPECT_TRUE(key != 4 && key != 5) << key;
  }
}

TEST(StoreFailure, EndsWhileReadsAreQueued) {
  FakeStore fake(one_layer(), slots(1));
  fake.disk.hold(true);
  {
    ExpertRequest request(*fake.store);
    request.start(0, Ids{0, 1, 2}, {}, Order::kByExpert);
    fake.disk.held(1);
  }
  auto end = std::async(std::launch::async, [&] { fake.store.reset(); });
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);  // its thread still reads
  fake.disk.hold(false);
  end.get();
  EXPECT_EQ(fake.ledger.used(), 0u);
}

}  // namespace
}  // namespace stoker::model
