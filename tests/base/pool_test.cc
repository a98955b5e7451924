#include "base/pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cfloat>
#include <chrono>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace stoker {
namespace {

std::unique_ptr<Pool> make_pool(int n_threads) { return std::move(Pool::create({n_threads})).value(); }

class PoolOf : public testing::TestWithParam<int> {};

TEST_P(PoolOf, RunsEveryWorkerOnce) {
  auto pool = make_pool(GetParam());
  EXPECT_EQ(pool->size(), GetParam());
  const auto caller = std::this_thread::get_id();
  for (int round = 0; round < 50; ++round) {
    std::vector<int> calls(static_cast<size_t>(GetParam()));
    bool caller_is_first = false;
    pool->run([&](Worker& worker) {
      EXPECT_EQ(worker.count(), GetParam());
      ++calls[static_cast<size_t>(worker.index())];
      if (worker.index() == 0) caller_is_first = std::this_thread::get_id() == caller;
    });
    ASSERT_EQ(calls, std::vector<int>(calls.size(), 1));
    ASSERT_TRUE(caller_is_first);
  }
  EXPECT_EQ(pool->entries(), 50u);
}

TEST_P(PoolOf, ABarrierShowsWhatWasWrittenBefore) {
  auto pool = make_pool(GetParam());
  const auto n = static_cast<size_t>(GetParam());
  std::vector<int> cells(n);  // plain memory: the barrier alone orders the accesses
  const int n_phases = GetParam() > 16 ? 100 : 1000;
  std::atomic<int> n_wrong{0};
  pool->run([&](Worker& worker) {
    for (int phase = 1; phase <= n_phases; ++phase) {
      cells[static_cast<size_t>(worker.index())] = phase;
      worker.barrier();
      for (int cell : cells) n_wrong += cell != phase;
      worker.barrier();
    }
  });
  EXPECT_EQ(n_wrong, 0);
}

/// What rounds of 1000, 999 ... 994 items leave, each item once.
void expect_hits(const std::vector<std::atomic<int>>& hits, int n_rounds) {
  for (int64_t i = 0; i < 1000; ++i) {
    int expected = 0;
    for (int round = 0; round < n_rounds; ++round) expected += i < 1000 - round % 7;
    ASSERT_EQ(hits[static_cast<size_t>(i)], expected) << i;
  }
}

TEST_P(PoolOf, EachCoversAllItemsOnce) {
  auto pool = make_pool(GetParam());
  std::vector<std::atomic<int>> hits(1000);
  const int n_rounds = GetParam() > 16 ? 20 : 200;
  pool->run([&](Worker& worker) {
    for (int round = 0; round < n_rounds; ++round) {
      // Different cuts one after the other: a claim left over from the last round would lose or double a chunk.
      const int64_t chunk = 1 + round % 13;
      worker.each(1000 - round % 7, chunk, [&](Range range) {
        EXPECT_LE(range.size(), chunk);
        EXPECT_GT(range.size(), 0);
        for (int64_t i = range.begin; i < range.end; ++i) ++hits[static_cast<size_t>(i)];
      });
      worker.barrier();
    }
    worker.each(0, 4, [](Range) { ADD_FAILURE() << "no items, no call"; });
  });
  expect_hits(hits, n_rounds);
}

TEST_P(PoolOf, RunsCoverAllItemsOnceAndInOrder) {
  auto pool = make_pool(GetParam());
  std::vector<std::atomic<int>> hits(1000);
  const int n_rounds = GetParam() > 16 ? 20 : 200;
  pool->run([&](Worker& worker) {
    for (int round = 0; round < n_rounds; ++round) {
      const int64_t n = 1000 - round % 7, chunk = 1 + round % 13;
      Range mine;
      int64_t at = -1;
      worker.each_in_runs(n, chunk, [&](Range range, Range run) {
        EXPECT_LE(range.size(), chunk);
        EXPECT_GT(range.size(), 0);
        EXPECT_TRUE(run.begin <= range.begin && range.end <= run.end && run.end <= n);
        for (int64_t i = range.begin; i < range.end; ++i) ++hits[static_cast<size_t>(i)];
        if (at < 0) {
          mine = run;
          EXPECT_TRUE(range.begin == run.begin || run.size() == range.size());
        }
        // One's own run without a gap, from then on only what is left of others'.
        if (run.begin == mine.begin && run.end == mine.end) {
          EXPECT_TRUE(at < 0 || range.begin == at) << range.begin << " after " << at;
          at = range.end;
        }
      });
      worker.barrier();
    }
    worker.each_in_runs(0, 4, [](Range, Range) { ADD_FAILURE() << "no items, no call"; });
  });
  expect_hits(hits, n_rounds);
}

// Who is done helps one who is not, from the end of its run.
TEST(Pool, RunsAreHelpedFromTheirEnd) {
  auto pool = make_pool(2);
  std::vector<int> by(100, -1);
  std::atomic<int> n_done{0};
  pool->run([&](Worker& worker) {
    worker.each_in_runs(100, 1, [&](Range range, Range run) {
      by[static_cast<size_t>(range.begin)] = worker.index();
      // Worker 0 stays with its first item until all others are done.
      while (worker.index() == 0 && n_done.load() < 99) {
      }
      ++n_done;
      EXPECT_EQ(run.size(), worker.index() == 1 && range.begin < 50 ? 1 : 50);
    });
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(by[static_cast<size_t>(i)], i == 0 ? 0 : 1) << i;
}

// More chunks than are counted: they are made larger.
TEST(Pool, RunsOfVeryManyItems) {
  auto pool = make_pool(2);
  std::atomic<int64_t> n{0};
  pool->run([&](Worker& worker) { worker.each_in_runs(1'000'000, 1, [&](Range range, Range) { n += range.size(); }); });
  EXPECT_EQ(n, 1'000'000);
}

TEST_P(PoolOf, SharesCoverAllItemsOnce) {
  auto pool = make_pool(GetParam());
  for (int64_t n : {0, 1, 15, 16, 17, 1000}) {
    for (int64_t unit : {1, 16}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      std::atomic<int64_t> smallest{INT64_MAX}, largest{0};
      pool->run([&](Worker& worker) {
        const Range range = worker.share(n, unit);
        EXPECT_TRUE(range.begin % unit == 0 || range.begin == n);
        EXPECT_TRUE(range.end % unit == 0 || range.end == n);
        for (int64_t i = range.begin; i < range.end; ++i) ++hits[static_cast<size_t>(i)];
        const int64_t n_units = (range.size() + unit - 1) / unit;
        for (int64_t old = smallest; n_units < old && !smallest.compare_exchange_weak(old, n_units);) {
        }
        for (int64_t old = largest; n_units > old && !largest.compare_exchange_weak(old, n_units);) {
        }
      });
      for (const auto& hit : hits) ASSERT_EQ(hit, 1);
      EXPECT_LE(largest - smallest, 1);
    }
  }
}

// On the two cores of the smallest machine: from alone to far oversubscribed.
INSTANTIATE_TEST_SUITE_P(Threads, PoolOf, testing::Values(1, 2, 3, 4, 7, 16, 64));

TEST(Pool, ShareOfHugeNumbersDoesNotOverflow) {
  auto pool = make_pool(3);
  const int64_t n = INT64_MAX - 5;
  std::vector<Range> ranges(3);
  pool->run([&](Worker& worker) { ranges[static_cast<size_t>(worker.index())] = worker.share(n, 1); });
  EXPECT_EQ(ranges[0].begin, 0);
  EXPECT_EQ(ranges[0].end, ranges[1].begin);
  EXPECT_EQ(ranges[1].end, ranges[2].begin);
  EXPECT_EQ(ranges[2].end, n);
}

TEST(Pool, SlowWorkersAreWaitedForAsleep) {
  auto pool = make_pool(2);
  int value = 0, seen = 0;
  rusage before, after;
  pool->run([&](Worker& worker) {
    if (worker.index() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      value = 42;
      worker.barrier();
      return;
    }
    getrusage(RUSAGE_THREAD, &before);
    worker.barrier();
    getrusage(RUSAGE_THREAD, &after);
    seen = value;
  });
  EXPECT_EQ(seen, 42);
  const auto microseconds = [](const rusage& usage) {
    return usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
  };
  EXPECT_LT(microseconds(after) - microseconds(before), 100000) << "it span instead of sleeping";
}

TEST(Pool, NestedRunsAreInline) {
  auto pool = make_pool(4);
  std::atomic<int> n_inner{0};
  std::vector<std::atomic<int>> hits(97);
  pool->run([&](Worker& outer) {
    outer.each(97, 1, [&](Range range) {
      const auto thread = std::this_thread::get_id();
      pool->run([&](Worker& inner) {
        EXPECT_EQ(inner.index(), 0);
        EXPECT_EQ(inner.count(), 1);
        EXPECT_EQ(std::this_thread::get_id(), thread);
        // Its own claims must not take any of the outer loop's.
        int n = 0;
        for (int round = 0; round < 2; ++round) {
          inner.each(10, 3, [&](Range part) { n += static_cast<int>(part.size()); });
          inner.barrier();
        }
        EXPECT_EQ(n, 20);
        EXPECT_EQ(inner.share(10).size(), 10);
        ++n_inner;
      });
      ++hits[static_cast<size_t>(range.begin)];
    });
  });
  EXPECT_EQ(n_inner, 97);
  for (const auto& hit : hits) EXPECT_EQ(hit, 1);
  EXPECT_EQ(pool->entries(), 1u);
  pool->run([](Worker& worker) { EXPECT_EQ(worker.count(), 4); });  // outside again
}

TEST(Pool, NestedThroughAnotherPoolIsInlineToo) {
  auto a = make_pool(2), b = make_pool(3);
  std::atomic<int> n_calls{0};
  a->run([&](Worker&) {
    b->run([&](Worker& worker) {
      EXPECT_EQ(worker.count(), 3);
      // On b's threads too, which know of a only through their caller. Waiting for a's turn would never end.
      a->run([&](Worker& inner) {
        EXPECT_EQ(inner.count(), 1);
        ++n_calls;
      });
    });
  });
  EXPECT_EQ(n_calls, 6);
  EXPECT_EQ(a->entries(), 1u);
  EXPECT_EQ(b->entries(), 2u);
}

TEST(Pool, OutsideThreadsTakeTurns) {
  auto pool = make_pool(3);
  int n_running = 0;  // plain memory: one run at a time
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        pool->run([&](Worker& worker) {
          if (worker.index() == 0) ++n_running;
          worker.barrier();
          EXPECT_EQ(n_running, 1);
          worker.barrier();
          if (worker.index() == 0) --n_running;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->entries(), 800u);
}

#if defined(__x86_64__)
void set_flush_to_zero(bool on) { _mm_setcsr(on ? 0x9fc0 : 0x1f80); }
bool flushes_to_zero() { return (_mm_getcsr() & 0x8040) == 0x8040; }
#else
void set_flush_to_zero(bool on) { asm volatile("msr fpcr, %0" ::"r"(on ? uint64_t{1} << 24 : 0)); }
bool flushes_to_zero() {
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return (fpcr >> 24 & 1) != 0;
}
#endif

/// A product that only a mode without flushing keeps.
bool keeps_denormals() {
  volatile float smallest = FLT_MIN, half = 0.5f;
  return smallest * half > 0.f;
}

TEST(Pool, WorkersRunInTheIeeeDefaultMode) {
  set_flush_to_zero(true);  // before the threads are made: they inherit it
  ASSERT_FALSE(keeps_denormals());
  auto pool = make_pool(3);
  std::atomic<int> n_kept{0}, n_nested_kept{0};
  pool->run([&](Worker&) {
    n_kept += keeps_denormals();
    set_flush_to_zero(true);
    pool->run([&](Worker&) { n_nested_kept += keeps_denormals(); });
  });
  const bool caller_still_flushes = flushes_to_zero();
  pool->run([&](Worker&) { n_kept += keeps_denormals(); });  // the last run's mode is gone
  set_flush_to_zero(false);
  EXPECT_EQ(n_kept, 6);
  EXPECT_EQ(n_nested_kept, 3);
  EXPECT_TRUE(caller_still_flushes);
}

TEST(Pool, RefusesSillyCounts) {
  for (int n : {0, -1, 1025}) {
    const auto pool = Pool::create({n});
    ASSERT_FALSE(pool) << n;
    EXPECT_EQ(pool.error().code, ErrorCode::kInvalidArgument);
  }
}

/// Exits with 0 when a pool is refused as it should be in a process that may have no more threads.
void create_without_threads() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_NPROC, &none);
  if (geteuid() == 0 && setuid(65534) != 0) _exit(3);  // root is not counted
  const auto pool = Pool::create({4});
  const bool right = !pool && pool.error().code == ErrorCode::kIo &&
                     pool.error().message.find("the system refuses thread 2 of 4: ") == 0;
  _exit(right ? 0 : 1);
}

TEST(PoolDeathTest, TheSystemRefusesAThread) { EXPECT_EXIT(create_without_threads(), testing::ExitedWithCode(0), ""); }

TEST(UsableCpus, AtMostTheAffinityMask) {
  cpu_set_t saved;
  ASSERT_EQ(sched_getaffinity(0, sizeof saved, &saved), 0);
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), CPU_COUNT(&saved));
}

}  // namespace
}  // namespace stoker
