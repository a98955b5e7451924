// Many threads on one store with few slots, over a disk that fails now and then.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "base/str_cat.h"
#include "tests/model/experts/fake_disk.h"

namespace stoker::model {
namespace {

using namespace testing;
using Take = ExpertRequest::Take;
using Order = ExpertRequest::Order;

#if defined(__SANITIZE_THREAD__)
constexpr int kThreads = 200, kRounds = 8;
#else
constexpr int kThreads = 48, kRounds = 24;
#endif
constexpr size_t kLayers = 3;
constexpr int32_t kExperts = 12;

/// What threads found wrong, and what they did.
struct Counts {
  std::atomic<uint64_t> wrong{0}, unnamed{0}, failed{0}, good{0}, dropped{0};
};

/// One of the threads: requests of all kinds, each expert's bytes compared.
class Customer {
 public:
  Customer(FakeStore& fake, Counts& counts, uint32_t seed) : fake_(fake), counts_(counts), random_(seed) {}

  void run() {
    ExpertRequest kept(*fake_.store);
    for (int round = 0; round < kRounds; ++round) {
      if (chance(4)) {
        ExpertRequest fresh(*fake_.store);
        one_request(fresh);
      } else {
        one_request(kept);
        kept.finish();
      }
      if (chance(8)) fake_->end_call(1 + random_() % 3);
    }
  }

 private:
  bool chance(uint32_t n) { return random_() % n == 0; }

  void one_request(ExpertRequest& request) {
    const size_t layer = random_() % kLayers;
    ids_.resize(kExperts);
    std::iota(ids_.begin(), ids_.end(), 0);
    std::shuffle(ids_.begin(), ids_.end(), random_);
    ids_.resize(1 + random_() % 6);
    request.start(layer, ids_, {}, chance(2) ? Order::kByExpert : Order::kByProjection);
    if (chance(10)) {
      ++counts_.dropped;
      return;
    }
    for (int32_t i; (i = request.take(Take::kWait)) >= 0;) {
      check(request, layer, i);
      if (chance(20)) {
        ++counts_.dropped;
        return;
      }
      request.release(i);
    }
  }

  void check(ExpertRequest& request, size_t layer, int32_t i) {
    std::array<Projection, kProjections> order = {Projection::kGate, Projection::kUp, Projection::kDown};
    std::shuffle(order.begin(), order.end(), random_);
    for (Projection p : order) {
      if (chance(16)) return;  // without waiting for the rest
      const std::byte* data = request.wait(i, p);
      if (!data) {
        ++counts_.failed;
        if (request.error(i).message.find("blk.") == std::string::npos) ++counts_.unnamed;
      } else {
        ++(fake_.experts.is(data, layer, ids_[static_cast<size_t>(i)], p) ? counts_.good : counts_.wrong);
      }
    }
  }

  FakeStore& fake_;
  Counts& counts_;
  std::mt19937 random_;
  std::vector<int32_t> ids_;
};

/// Samples what must hold at any time.
class Inspector {
 public:
  explicit Inspector(FakeStore& fake)
      : thread_([this, &fake] {
          const uint64_t each = fake.experts.expert_bytes(), most = static_cast<uint64_t>(fake->n_slots()) * each;
          while (!done_) {
            const ExpertStore::Stats stats = fake->stats();
            if (stats.resident_bytes + stats.in_flight * each > most) ++broken_;
            if (stats.in_flight_peak > static_cast<uint64_t>(fake->n_slots())) ++broken_;
            std::this_thread::yield();
          }
        }) {}
  ~Inspector() {
    done_ = true;
    thread_.join();
    EXPECT_EQ(broken_, 0);
  }

 private:
  std::atomic<bool> done_{false};
  int broken_ = 0;
  std::thread thread_;
};

void run_all(FakeStore& fake, Counts& counts) {
  const Inspector inspector(fake);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { Customer(fake, counts, static_cast<uint32_t>(i)).run(); });
  }
  for (std::thread& thread : threads) thread.join();
}

void expect_order_afterwards(FakeStore& fake, const Counts& counts) {
  EXPECT_EQ(counts.wrong, 0u);
  EXPECT_EQ(counts.unnamed, 0u);
  EXPECT_GT(counts.good, 1000u);
  EXPECT_GT(counts.dropped, 10u);
  while (fake->stats().in_flight > 0) std::this_thread::yield();  // of those that were dropped
  const ExpertStore::Stats stats = fake->stats();
  EXPECT_EQ(stats.hits + stats.joined + stats.misses, stats.requests);
  EXPECT_EQ(stats.bytes_read, fake.disk.bytes_read());
  EXPECT_EQ(stats.resident_bytes % fake.experts.expert_bytes(), 0u);
  // No lease is left: everything can be had at once.
  fake.disk.judge({});
  std::vector<int32_t> ids(static_cast<size_t>(std::min<int64_t>(fake->n_slots(), kExperts)));
  std::iota(ids.begin(), ids.end(), 0);
  ExpertRequest request(*fake.store);
  request.start(1, ids, {}, Order::kByExpert);
  EXPECT_TRUE(request.all_placed());
  EXPECT_TRUE(take_all(fake, request, 1, ids));
}

class StoreThreads : public ::testing::TestWithParam<std::tuple<int, EvictionPolicy::Kind>> {};

TEST_P(StoreThreads, AllGetTheirBytes) {
  const Watchdog watchdog(240);
  const auto [n_slots, policy] = GetParam();
  FakeExperts experts(kExperts, 4, {{}, {}, {}});
  const uint64_t budget = static_cast<uint64_t>(n_slots) * experts.expert_bytes();
  FakeStore fake(std::move(experts), {.budget_bytes = budget, .lanes = 5, .policy = policy});
  fake.disk.slow_down(std::chrono::microseconds(20));
  std::mt19937 random(1);  // the judge is asked one at a time
  fake.disk.judge([&](const FakeDisk::Read& read) -> std::optional<Error> {
    if (random() % 64 != 0) return std::nullopt;
    return Error{ErrorCode::kIo, str_cat("tensor '", read.tensor->name, "': Input/output error")};
  });
  Counts counts;
  run_all(fake, counts);
  EXPECT_GT(counts.failed, 0u);
  EXPECT_GT(fake->stats().errors, 0u);
  expect_order_afterwards(fake, counts);
}

INSTANTIATE_TEST_SUITE_P(Slots, StoreThreads,
                         ::testing::Values(std::tuple(0, EvictionPolicy::Kind::kRecency),
                                           std::tuple(3, EvictionPolicy::Kind::kLikelihood),
                                           std::tuple(9, EvictionPolicy::Kind::kRecency),
                                           std::tuple(36, EvictionPolicy::Kind::kCounts)));

}  // namespace
}  // namespace stoker::model
