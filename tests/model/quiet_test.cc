// A forward pass neither allocates nor asks the system for anything but to wait: at a barrier, or for an expert that
// other threads read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>

#include "gguf/file.h"
#include "model/forward.h"
#include "model/model.h"
#include "tests/model/golden.h"

extern "C" void* __libc_malloc(size_t size);

namespace {

std::atomic<bool> watching{false};
thread_local bool watched = false;
std::atomic<int> n_allocations{0}, n_calls{0}, last_call{-1};

}  // namespace

// What operator new, vectors and strings come down to.
extern "C" void* malloc(size_t size) {
  if (watched && watching.load(std::memory_order_relaxed)) ++n_allocations;
  return __libc_malloc(size);
}

namespace stoker::model {
namespace {

/// From now on this thread's allocations are counted, and every system call of its, except waiting and what a signal
/// handler and the end need, is counted instead of made. There is no way back.
bool watch_this_thread() {
  watched = true;
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    ++n_calls;
    last_call = info->si_syscall;
  };
  sigaction(SIGSYS, &action, nullptr);
  constexpr int kAllowed[] = {SYS_futex, SYS_rt_sigreturn, SYS_exit_group};
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (int call : kAllowed) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/// Prefill of two sequences in pieces, decoding of both at once, hidden rows: what an engine does all day.
bool work(Runner& runner, Sequence& a, Sequence& b, const std::vector<int32_t>& tokens) {
  const std::span<const int32_t> all(tokens);
  bool fine = true;
  const auto step = [&](size_t n_a, size_t n_b) {
    const Span spans[] = {{.sequence = &a,
                           .tokens = all.first(n_a),
                           .position = a.length(),
                           .logits = {static_cast<int64_t>(n_a) - 1, static_cast<int64_t>(n_a)}},
                          {.sequence = &b,
                           .tokens = all.first(n_b),
                           .position = b.length(),
                           .logits = {static_cast<int64_t>(n_b) - 1, static_cast<int64_t>(n_b)},
                           .hidden = {0, static_cast<int64_t>(n_b)}}};
    const auto outputs = runner.forward(spans);
    fine = fine && outputs && outputs->failures.empty();
  };
  for (int i = 0; i < 3; ++i) step(37, 20);
  for (int i = 0; i < 80; ++i) step(1, 1);
  fine = fine && a.truncate(50) && b.truncate(3);
  step(64, 1);
  return fine;
}

bool watch(Pool& pool) {
  std::atomic<bool> fine{true};
  pool.run([&](Worker&) {
    if (!watch_this_thread()) fine = false;
  });
  return fine;
}

/// Runs a model in a process that ends with the filter that cannot be taken back. The store's threads may read.
[[noreturn]] void run_watched(const gguf::File& file, bool stream) {
  Ledger ledger;
  auto pool = std::move(Pool::create({.n_threads = 3})).value();
  auto model = std::move(Model::prepare(file, {})).value();
  const uint64_t some = stream ? model->expert_index().bytes() / 8 : 0;
  bool fine = static_cast<bool>(
      model->read(file, ledger, *pool, {.residency = {.stream_experts = stream}, .experts = {.budget_bytes = some}}));
  auto kv = std::move(KvPool::create(ledger, model->plan().kv, {.n_pages = 16})).value();
  auto runner = std::move(Runner::create(model->plan(), *pool, ledger,
                                         {.max_rows = 128, .chunk_rows = stream ? 50 : 0, .experts = model->experts()}))
                    .value();
  const std::vector<int32_t> tokens(64, 7);
  Sequence a(*kv, 512), b(*kv, 512), c(*kv, 512), d(*kv, 512);
  fine = fine && work(*runner, a, b, tokens);
  a.clear();
  b.clear();
  const uint64_t misses = stream ? model->experts()->stats().misses : 0;
  fine = fine && watch(*pool);
  watching = true;
  fine = work(*runner, c, d, tokens) && fine;
  watching = false;
  if (stream) fine = fine && model->experts()->stats().misses > misses;  // there was something to wait for
  _exit(!fine ? 1 : n_allocations != 0 ? 2 : n_calls != 0 ? 3 : 0);
}

void expect_quiet(const char* name, bool stream) {
  const auto file = gguf::File::open(testing::tiny_path(name));
  ASSERT_TRUE(file) << file.error().message;
  // The parent has no threads.
  EXPECT_EXIT(run_watched(*file, stream), ::testing::ExitedWithCode(0), "")
      << "1: a pass or the filter failed, 2: allocations, 3: system calls";
}

class Quiet : public ::testing::TestWithParam<const char*> {};

TEST_P(Quiet, NeitherAllocatesNorCallsTheSystem) { expect_quiet(GetParam(), false); }

class QuietStreamed : public ::testing::TestWithParam<const char*> {};

TEST_P(QuietStreamed, NeitherAllocatesNorCallsTheSystem) { expect_quiet(GetParam(), true); }

TEST(QuietDeathTest, TheCountersCount) {
  const auto child = [] {
    const bool fine = watch_this_thread();
    watching = true;
    delete new int(7);
    std::vector<int> values(1000);
    watching = false;
    getppid();
    _exit(fine && n_allocations > 0 && n_calls == 1 && last_call == SYS_getppid ? 0 : 1);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

std::string name_of(const ::testing::TestParamInfo<const char*>& instance) {
  std::string text(instance.param);
  for (char& c : text)
    if (c == '-') c = '_';
  return text;
}

INSTANTIATE_TEST_SUITE_P(Architectures, Quiet,
                         ::testing::Values("llama", "qwen2", "qwen3", "gemma2", "gemma3", "type-q4_k", "mixtral",
                                           "olmoe", "qwen2moe", "gpt-oss-mxfp4"),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Architectures, QuietStreamed,
                         ::testing::Values("mixtral", "olmoe", "qwen2moe", "gpt-oss-mxfp4"), name_of);

}  // namespace
}  // namespace stoker::model
