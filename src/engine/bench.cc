#include "engine/bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/seconds.h"
#include "base/str_cat.h"
#include "engine/bench_peaks.h"

namespace stoker::engine {
namespace {

/// Apart by this many tokens, sequences of one batch do not say the same.
constexpr int64_t kStreamStride = 17;

/// Some tokens that are no special ones in usual vocabularies; the same in every run.
std::vector<int32_t> some_tokens(int64_t n, int64_t n_vocab) {
  std::vector<int32_t> tokens;
  tokens.reserve(static_cast<size_t>(n));
  uint64_t state = 1;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(n_vocab)));
  }
  return tokens;
}

/// More logits than stand in memory at once are taken block by block, and dropped.
class Drop final : public model::LogitsConsumer {
  void consume(const model::LogitsBlock&, Worker&) noexcept override {}
};

uint64_t bytes_streamed(const Engine& engine) {
  uint64_t bytes = 0;
  for (const model::ExpertStore* store : {engine.model().experts(), engine.model().unit_store()}) {
    if (store) bytes += store->stats().bytes_read;
  }
  return bytes;
}

constexpr int64_t kLoopBytes = 256 << 20;  ///< Read at once: as long as a token of a small model takes.

/// Bytes per second of the faster order; 0 before anything was read.
double loop_rate(const Bench::Timed& timed) {
  double best = 0;
  for (const Bench::Loop& loop : timed.loops) {
    if (loop.seconds > 0) best = std::max(best, loop.bytes / loop.seconds);
  }
  return best;
}

/// Of values that it sorts.
double median_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

uint64_t Bench::tokens_of(const BenchCase& test) const {
  const int64_t held = sequences_.empty() ? 0 : sequences_[0].length();
  return static_cast<uint64_t>(test.tokens() * (options_.repetitions + 1) + std::max<int64_t>(0, test.depth - held));
}

Status Bench::take(const BenchCall& call) {
  if (options_.cancel && options_.cancel->load(std::memory_order_relaxed)) {
    return Error{ErrorCode::kCancelled, "cancelled"};
  }
  spans_.clear();
  int64_t n_logits = 0, n_rows = 0;
  for (const BenchPiece& piece : call) {
    model::Sequence& sequence = sequences_[static_cast<size_t>(piece.stream)];
    const int64_t n = piece.end - piece.begin, at = sequence.length();
    const auto first = static_cast<size_t>(at + piece.stream * kStreamStride + shift_);
    spans_.push_back({.sequence = &sequence,
                      .tokens = std::span(tokens_).subspan(first, static_cast<size_t>(n)),
                      .position = at,
                      .logits = piece.wants_logits ? Range{n - 1, n} : Range{}});
    n_logits += piece.wants_logits;
    n_rows += n;
  }
  Drop drop;
  STOKER_TRY(model::Outputs outputs,
             engine_.runner().forward(spans_, n_logits > engine_.runner().max_logits() ? &drop : nullptr));
  if (!outputs.failures.empty()) return Error{outputs.failures[0].code, outputs.failures[0].message};
  if (options_.on_tokens) options_.on_tokens(static_cast<uint64_t>(n_rows));
  return Ok{};
}

Status Bench::copy_of_first(model::Sequence& sequence, int64_t length) {
  // In pages of its own: a fork would share them, and the caches would serve all sequences from one read.
  sequence.clear();
  STOKER_TRY_STATUS(sequence.reserve(length));
  for (int64_t t = 0; t * kernels::kTilePositions < length; ++t) {
    std::memcpy(sequence.tile(t), sequences_[0].tile(t), static_cast<size_t>(engine_.kv().layout().page_bytes));
  }
  sequence.advance(length);
  return Ok{};
}

Status Bench::fill(const BenchCase& test) {
  while (static_cast<int64_t>(sequences_.size()) > test.streams) sequences_.pop_back();
  for (model::Sequence& sequence : sequences_) STOKER_TRY_STATUS(sequence.truncate(sequence.cut_point(test.depth)));
  while (static_cast<int64_t>(sequences_.size()) < test.streams) sequences_.emplace_back(engine_.kv());
  const int64_t n_tokens = test.depth + test.n * (options_.repetitions + 1) + test.streams * kStreamStride;
  if (static_cast<int64_t>(tokens_.size()) < n_tokens) tokens_ = some_tokens(n_tokens, engine_.model().vocab_size());
  // What truncates lies in pages alone: it is computed once and copied.
  const bool copies = engine_.kv().layout().traits().truncates;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    model::Sequence& sequence = sequences_[i];
    if (copies && i > 0 && sequence.length() < test.depth) STOKER_TRY_STATUS(copy_of_first(sequence, test.depth));
    while (sequence.length() < test.depth) {
      const int64_t at = sequence.length(), end = std::min(test.depth, at + engine_.options().batch);
      STOKER_TRY_STATUS(take({{.stream = static_cast<int64_t>(i), .begin = at, .end = end}}));
    }
    sequence.forget_checkpoints();
    sequence.checkpoint();
  }
  return Ok{};
}

Result<Bench::Timed> Bench::timed(std::span<const BenchCall> calls, bool read_loop) {
  const Buffer& weights = engine_.model().weights().arena;
  const auto units = static_cast<int64_t>(weights.size()) / kReadUnit;
  Timed sum;
  for (const BenchCall& call : calls) {
    const auto start = std::chrono::steady_clock::now();
    STOKER_TRY_STATUS(take(call));
    sum.seconds += seconds_since(start);
    if (!read_loop || units == 0) continue;
    const int64_t begin = loop_at_ < units ? loop_at_ : 0, n = std::min(units - begin, kLoopBytes / kReadUnit);
    loop_at_ = begin + n;
    const size_t order = n_loops_++ % std::size(kReadOrders);
    const auto loop_start = std::chrono::steady_clock::now();
    engine_.pool().run([&](Worker& worker) {
      const Range mine = worker.share(n);
      read_all(weights.data() + (begin + mine.begin) * kReadUnit, static_cast<size_t>(mine.size() * kReadUnit),
               kReadOrders[order]);
    });
    sum.loops[order].seconds += seconds_since(loop_start);
    sum.loops[order].bytes += static_cast<double>(n * kReadUnit);
  }
  return sum;
}

Result<BenchRow> Bench::run(const BenchCase& test) {
  STOKER_TRY_STATUS(fill(test));
  const std::vector<BenchCall> calls = bench_calls(test, engine_.options().batch);
  const auto n_tokens = static_cast<double>(test.tokens());
  const BenchTraffic traffic = bench_traffic(engine_.model(), test, engine_.options().batch);
  std::vector<double> rates, joules, loop_rates, loop_shares;
  uint64_t streamed = 0;
  for (int i = 0; i <= options_.repetitions; ++i) {
    if (i == 1) streamed = bytes_streamed(engine_);
    shift_ = i * test.n;  // other tokens each time: those of the time before would find their experts in the cache
    energy_.start();
    STOKER_TRY(const Timed sum, timed(calls, options_.read_loop && i > 0));
    const auto energy = energy_.joules();
    if (i > 0) rates.push_back(n_tokens / sum.seconds);  // the first warms up
    if (const double rate = loop_rate(sum); rate > 0) {
      loop_rates.push_back(rate);
      loop_shares.push_back(traffic.bytes_per_token * rates.back() / loop_rates.back());
    }
    if (i > 0 && energy) joules.push_back(*energy / n_tokens);
    for (model::Sequence& sequence : sequences_) STOKER_TRY_STATUS(sequence.truncate(test.depth));
  }
  shift_ = 0;
  BenchRow row{.test = test,
               .median = median_of(rates),
               .min = rates.front(),
               .max = rates.back(),
               .repetitions = options_.repetitions,
               .traffic = traffic,
               .disk_bytes_per_token =
                   static_cast<double>(bytes_streamed(engine_) - streamed) / (n_tokens * options_.repetitions)};
  if (!joules.empty()) row.joules_per_token = median_of(joules);
  if (!loop_rates.empty()) row.read_loop_rate = median_of(loop_rates);
  if (!loop_shares.empty()) row.read_loop_share = median_of(loop_shares);
  return row;
}

}  // namespace stoker::engine
