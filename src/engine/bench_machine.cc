#include "engine/bench_machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "base/buffer.h"
#include "base/cpu_order.h"
#include "base/pool.h"
#include "engine/bench_peaks.h"

namespace stoker::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kSliceBytes = 32 << 20;

/// Twice what the caches say they hold, within reason.
uint64_t buffer_bytes(bool quick) {
  if (quick) return 8 << 20;
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::clamp<uint64_t>(2 * static_cast<uint64_t>(std::max(cache, 0L)), 512 << 20, uint64_t{2} << 30);
}

bool is_cancelled(const MachineOptions& options) {
  return options.cancel && options.cancel->load(std::memory_order_relaxed);
}

Error cancelled_error() { return {ErrorCode::kCancelled, "cancelled"}; }

/// Every thread goes round its own part, which it also wrote first, slice by slice; the slices of all threads together
/// are timed from the first start to the last end. Slices are short (a millisecond or two), so that some are
/// undisturbed on a busy machine too, and a part is read once before its first slice comes again. Both orders take
/// turns; the figures are those of the faster.
MachineFigures::Read measure_read(Pool& pool, const Buffer& buffer, const MachineOptions& options) {
  const int64_t part = static_cast<int64_t>(buffer.size()) / pool.size() / kReadUnit * kReadUnit;
  const int64_t slice = std::min(part, kSliceBytes);
  const double seconds = options.quick ? 0 : options.read_seconds;
  std::vector<Clock::time_point> starts(static_cast<size_t>(pool.size()));
  std::vector<double> rates[2];
  for (auto& of_order : rates) of_order.reserve(options.quick ? 3 : 10000);
  size_t order = 0;
  bool more = true;  // set by the first worker between barriers
  pool.run([&](Worker& worker) {
    const std::byte* mine = buffer.data() + worker.index() * part;
    std::memset(buffer.data() + worker.index() * part, 1, static_cast<size_t>(part));
    const auto begin = Clock::now();
    for (int64_t at = 0;; at = at + 2 * slice <= part ? at + slice : 0) {
      worker.barrier();
      if (!more) break;
      starts[static_cast<size_t>(worker.index())] = Clock::now();
      read_all(mine + at, static_cast<size_t>(slice), kReadOrders[order]);
      worker.barrier();
      if (worker.index() != 0) continue;
      const auto start = *std::min_element(starts.begin(), starts.end()), end = Clock::now();
      auto& of_order = rates[order];
      of_order.push_back(static_cast<double>(slice * pool.size()) / std::chrono::duration<double>(end - start).count());
      const bool is_over = std::chrono::duration<double>(end - begin).count() >= seconds && rates[1].size() >= 3;
      more = !is_over && rates[1].size() < rates[1].capacity() && !is_cancelled(options);
      order = 1 - order;
    }
  });
  MachineFigures::Read best{.threads = pool.size()};
  for (auto& of_order : rates) {
    std::sort(of_order.begin(), of_order.end());
    const double median = of_order[of_order.size() / 2];
    if (median > best.median) best.bytes = of_order.back(), best.median = median;
  }
  return best;
}

/// All threads at once, as they share clock and power; each is timed by its own processor time.
MachineFigures::Peak measure_peak(Pool& pool, Isa isa, const MachineOptions& options) {
  const int64_t rounds = options.quick ? 10'000 : 20'000'000;
  std::vector<double> int8_ops(static_cast<size_t>(pool.size())), float_ops(int8_ops);
  pool.run([&](Worker& worker) {
    const auto i = static_cast<size_t>(worker.index());
    worker.barrier();
    int8_ops[i] = int8_peak(isa, rounds);
    worker.barrier();
    float_ops[i] = float_peak(isa, rounds);
  });
  return {.isa = isa,
          .threads = pool.size(),
          .int8_ops = std::accumulate(int8_ops.begin(), int8_ops.end(), 0.0),
          .float_ops = std::accumulate(float_ops.begin(), float_ops.end(), 0.0)};
}

/// The buffer is a new one each time: its pages come from the memory nodes of those who write them first.
Status measure(int threads, Ledger& ledger, const MachineOptions& options, MachineFigures& out) {
  STOKER_TRY(const Buffer buffer, Buffer::allocate(ledger, "read buffer", buffer_bytes(options.quick)));
  STOKER_TRY(std::unique_ptr<Pool> pool, Pool::create({.n_threads = threads, .nodes = memory_nodes(process_cpus())}));
  const auto step = [&] {
    if (options.on_step) options.on_step();
    return is_cancelled(options);
  };
  out.reads.push_back(measure_read(*pool, buffer, options));
  if (step()) return cancelled_error();
  for (const Isa isa : options.peaks ? available_isas() : std::vector<Isa>{}) {
    out.peaks.push_back(measure_peak(*pool, isa, options));
    if (step()) return cancelled_error();
  }
  return Ok{};
}

}  // namespace

double MachineFigures::read_rate(int threads) const {
  for (const Read& read : reads) {
    if (read.threads == threads) return read.bytes;
  }
  return 0;
}

double MachineFigures::int8_rate(Isa isa, int threads) const {
  for (const Peak& peak : peaks) {
    if (peak.isa == isa && peak.threads == threads) return peak.int8_ops;
  }
  return 0;
}

uint64_t MachineOptions::steps() const { return threads.size() * (1 + (peaks ? available_isas().size() : 0)); }

Result<MachineFigures> measure_machine(Ledger& ledger, const MachineOptions& options) {
  MachineFigures figures;
  for (const int threads : options.threads) STOKER_TRY_STATUS(measure(threads, ledger, options, figures));
  return figures;
}

std::vector<int> thread_counts(int usable) {
  std::vector<int> counts;
  for (int n = 1; n < usable; n *= 2) counts.push_back(n);
  counts.push_back(usable);
  return counts;
}

}  // namespace stoker::engine
