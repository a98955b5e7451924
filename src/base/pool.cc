#include "base/pool.h"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cpu_order.h"
#include "base/fp_env.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/str_cat.h"

namespace stoker {
namespace {

constexpr int kMaxThreads = 1024;

// Pauses (25 ns each on Zen 4) before a wait sleeps. At a barrier the others are a few microseconds away or wait for a
// processor. Phases of 20 us by two threads, on two cores that 11 other processes wanted too, took 194 us with 500
// pauses, 314 with 2000, 453 with 4000, 1455 with 16000; following what would have paid the last time gave 420.
constexpr int kBarrierSpins = 1000;
// Once per run, and between two steps of decoding there is some sampling to do.
constexpr int kStartSpins = 4000;
// With more threads than processors the one waited for may need this very processor.
constexpr int kSpinsOversubscribed = 50;

/// The runs that this thread is inside of, innermost first; a nested run hands its caller's on to its workers.
struct Frame {
  const void* pool;
  const Frame* outer;
};
thread_local const Frame* current_frame = nullptr;

class FrameScope {
 public:
  FrameScope(const void* pool, const Frame* outer) : saved_(current_frame), frame_{pool, outer} {
    current_frame = &frame_;
  }
  ~FrameScope() { current_frame = saved_; }

 private:
  const Frame* saved_;
  Frame frame_;
};

bool inside(const void* pool) {
  for (const Frame* frame = current_frame; frame != nullptr; frame = frame->outer) {
    if (frame->pool == pool) return true;
  }
  return false;
}

/// The processors that each worker stays on; none: where it may run.
std::vector<std::vector<int>> worker_places(const NodeSplit& split, int n_threads, bool pin) {
  std::vector<std::vector<int>> places(static_cast<size_t>(n_threads));
  if (!pin && split.n_nodes() == 1) return places;
  for (int node = 0; node < split.n_nodes(); ++node) {
    const std::vector<int>& all = split.n_nodes() == 1 ? process_cpus() : split.node(node).cpus;
    const std::vector<int> order = pin ? cpu_order(all) : all;
    const Range workers = split.workers(node);
    for (int64_t i = 0; i < workers.size() && !order.empty(); ++i) {
      auto& place = places[static_cast<size_t>(workers.begin + i)];
      place = pin ? std::vector{order[static_cast<size_t>(i) % order.size()]} : order;
    }
  }
  return places;
}

struct Job {
  void (*call)(void*, Worker&) = nullptr;  ///< Null: the threads end.
  void* context = nullptr;
  const Frame* outer = nullptr;
};

}  // namespace

struct Pool::State {
  State(int threads_wanted, std::span<const MemoryNode> nodes)
      : n_threads(threads_wanted),
        crowded(n_threads > usable_cpus()),
        split(nodes, threads_wanted),
        near_claimed(split.n_nodes() > 1 ? static_cast<size_t>(split.n_nodes()) : 0),
        taken(static_cast<size_t>(threads_wanted)) {}

  const int n_threads;
  const bool crowded;
  const NodeSplit split;
  std::vector<std::thread> threads;

  Mutex turn;  ///< Held by the caller for the length of its run.
  Job job;     ///< Written by the holder of `turn` before start.advance(), read by workers after it.
  std::atomic<uint64_t> n_entries{0};

  // On lines of their own: arrivals must not take the line that waiters poll.
  alignas(64) Gate start{crowded ? kSpinsOversubscribed : kStartSpins};
  alignas(64) Gate generation{crowded ? kSpinsOversubscribed : kBarrierSpins};
  alignas(64) std::atomic<int> n_arrived{0};
  alignas(64) std::atomic<int64_t> n_claimed{0};
  struct alignas(64) Claimed {
    std::atomic<int64_t> n{0};
  };
  std::vector<Claimed> near_claimed;  ///< By memory node, where there are two and more.
  /// What is taken of a worker's run: the generation in which that was, 32 bits, and how many chunks from its start and
  /// from its end, 16 each. Nothing, where the generation is another.
  struct alignas(64) Taken {
    std::atomic<uint64_t> word{0};
  };
  std::vector<Taken> taken;

  void forget_claims() {
    n_claimed.store(0, std::memory_order_relaxed);
    for (Claimed& node : near_claimed) node.n.store(0, std::memory_order_relaxed);
  }
  /// The last to arrive resets what belongs to the past phase, then lets the others go.
  void arrive() {
    if (n_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 != n_threads) return;
    n_arrived.store(0, std::memory_order_relaxed);
    forget_claims();
    generation.advance();
  }
  void barrier() {
    const uint32_t seen = generation.value();
    arrive();
    generation.wait_past(seen);
  }
};

void Worker::barrier() {
  n_claimed_ = 0;
  if (count_ > 1) pool_.state_->barrier();
}

int64_t Worker::claim() {
  return count_ + (count_ > 1 ? pool_.state_->n_claimed.fetch_add(1, std::memory_order_relaxed) : n_claimed_++);
}

int64_t Worker::claim_near() {
  if (!split_) return claim();
  auto& claimed = pool_.state_->near_claimed[static_cast<size_t>(node_)].n;
  return near_count_ + claimed.fetch_add(1, std::memory_order_relaxed);
}

/// The next chunk of the run of a worker of this node, its owner's from the start, another's from the end; -1: none.
int64_t Worker::take(int of, int64_t n_chunks) {
  if (count_ == 1) return n_claimed_ < n_chunks ? n_claimed_++ : -1;
  Pool::State& state = *pool_.state_;
  const int owner = index_ - near_index_ + of;
  auto& word = state.taken[static_cast<size_t>(owner)].word;
  const uint64_t generation = state.generation.value();
  uint64_t seen = word.load(std::memory_order_relaxed);
  for (;;) {
    const bool stale = seen >> 32 != generation;
    const uint64_t front = stale ? 0 : seen >> 16 & 0xffff, back = stale ? 0 : seen & 0xffff;
    if (static_cast<int64_t>(front + back) >= n_chunks) return -1;
    const bool own = of == near_index_;
    const uint64_t taken = generation << 32 | (front + own) << 16 | (back + !own);
    if (!word.compare_exchange_weak(seen, taken, std::memory_order_relaxed)) continue;
    return own ? static_cast<int64_t>(front) : n_chunks - 1 - static_cast<int64_t>(back);
  }
}

Range Worker::share_of(int64_t n, int64_t unit, int index, int count) {
  const int64_t n_units = n / unit + (n % unit != 0 ? 1 : 0);
  const int64_t each_gets = n_units / count, rest = n_units % count;
  const int64_t first = each_gets * index + (index < rest ? index : rest);
  const int64_t last = first + each_gets + (index < rest ? 1 : 0);
  return {first * unit, last == n_units ? n : last * unit};
}

Pool::Pool(int n_threads, std::span<const MemoryNode> nodes) : state_(std::make_unique<State>(n_threads, nodes)) {}

Result<std::unique_ptr<Pool>> Pool::create(Options options) {
  if (options.n_threads < 1 || options.n_threads > kMaxThreads) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("threads: ", options.n_threads, " is out of range, 1 to ", kMaxThreads, " are possible")};
  }
  std::unique_ptr<Pool> pool(new Pool(options.n_threads, options.nodes));
  STOKER_TRY_STATUS(pool->start_threads(options.pin));
  return pool;
}

Status Pool::start_threads(bool pin) {
  // Signals go to the threads that are prepared for them, never to a worker.
  sigset_t all, saved;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  // A processor that the system takes away meanwhile is no reason to fail: that worker runs where it may.
  std::vector<std::vector<int>> places = worker_places(state_->split, state_->n_threads, pin);
  pin_to(places[0]);
  std::string failure;
  try {
    for (int index = 1; index < state_->n_threads; ++index) {
      state_->threads.emplace_back(
          [this, index, cpus = std::move(places[static_cast<size_t>(index)])] { work(index, cpus); });
    }
  } catch (const std::system_error& error) {
    failure = error.what();
  }
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
  if (failure.empty()) return Ok{};
  return Error{ErrorCode::kIo, str_cat("the system refuses thread ", state_->threads.size() + 2, " of ",
                                       state_->n_threads, ": ", failure, "; ask for fewer threads")};
}

void Pool::work(int index, const std::vector<int>& cpus) {
  pin_to(cpus);
  pthread_setname_np(pthread_self(), str_cat("stoker-", index).c_str());
  State& state = *state_;
  for (uint32_t seen = 0;; ++seen) {
    state.start.wait_past(seen);
    const Job job = state.job;
    if (job.call == nullptr) return;
    const FpEnvScope fp_env;
    const FrameScope frame(this, job.outer);
    Worker worker = make_worker(index);
    job.call(job.context, worker);
    state.arrive();
  }
}

Pool::~Pool() {
  state_->job = Job{};
  state_->start.advance();
  for (std::thread& thread : state_->threads) thread.join();
}

int Pool::size() const { return state_->n_threads; }

const NodeSplit& Pool::split() const { return state_->split; }

Worker Pool::make_worker(int index) {
  const NodeSplit& split = state_->split;
  Worker worker(*this, index, state_->n_threads);
  if (split.n_nodes() == 1) return worker;
  worker.split_ = &split;
  worker.node_ = split.node_of(index);
  const Range workers = split.workers(worker.node_);
  worker.near_index_ = index - static_cast<int>(workers.begin);
  worker.near_count_ = static_cast<int>(workers.size());
  return worker;
}

uint64_t Pool::entries() const { return state_->n_entries.load(std::memory_order_relaxed); }

void Pool::run_erased(void (*call)(void*, Worker&), void* context) {
  const FpEnvScope fp_env;
  State& state = *state_;
  if (inside(this)) {
    Worker alone(*this, 0, 1);
    return call(context, alone);
  }
  MutexLock turn(state.turn);
  state.n_entries.fetch_add(1, std::memory_order_relaxed);
  state.forget_claims();
  state.job = Job{call, context, current_frame};
  const FrameScope frame(this, current_frame);
  Worker caller = make_worker(0);
  if (state.n_threads > 1) state.start.advance();
  call(context, caller);
  if (state.n_threads > 1) state.barrier();
}

}  // namespace stoker
