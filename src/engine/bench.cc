#include "engine/bench.h"

#include <algorithm>
#include <chrono>

#include "base/str_cat.h"
#include "engine/step.h"

namespace stoker::engine {
namespace {

/// Some tokens that are no special ones in usual vocabularies; the same in every run.
std::vector<int32_t> some_tokens(int64_t n, int64_t n_vocab) {
  std::vector<int32_t> tokens;
  uint64_t state = 1;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(n_vocab)));
  }
  return tokens;
}

Status read_prompt(Engine& engine, std::span<const int32_t> tokens) {
  model::Sequence sequence(engine.kv());
  for (size_t at = 0; at < tokens.size();) {
    const size_t rows = std::min(tokens.size() - at, static_cast<size_t>(engine.runner().max_rows()));
    STOKER_TRY_STATUS(step(engine, sequence, tokens.subspan(at, rows), at + rows == tokens.size()));
    at += rows;
  }
  return Ok{};
}

Status write_answer(Engine& engine, std::span<const int32_t> tokens) {
  model::Sequence sequence(engine.kv());
  for (const int32_t& token : tokens) STOKER_TRY_STATUS(step(engine, sequence, {&token, 1}, true));
  return Ok{};
}

Result<BenchRow> time(Engine& engine, const BenchOptions& options, const char* name, int64_t n,
                      Status (*test)(Engine&, std::span<const int32_t>)) {
  const std::vector<int32_t> tokens = some_tokens(n, engine.model().vocab_size());
  std::vector<double> rates;
  for (int i = 0; i <= options.repetitions; ++i) {
    if (options.cancel && options.cancel->load(std::memory_order_relaxed))
      return Error{ErrorCode::kCancelled, "cancelled"};
    const auto start = std::chrono::steady_clock::now();
    STOKER_TRY_STATUS(test(engine, tokens));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0) rates.push_back(static_cast<double>(n) / seconds);  // the first warms up
    if (options.on_step) options.on_step();
  }
  std::sort(rates.begin(), rates.end());
  const double median = (rates[(rates.size() - 1) / 2] + rates[rates.size() / 2]) / 2;
  return BenchRow{.test = str_cat(name, n),
                  .median = median,
                  .min = rates.front(),
                  .max = rates.back(),
                  .repetitions = options.repetitions};
}

}  // namespace

Result<std::vector<BenchRow>> bench(Engine& engine, const BenchOptions& options) {
  std::vector<BenchRow> rows;
  if (options.prompt > 0) {
    STOKER_TRY(BenchRow row, time(engine, options, "pp", options.prompt, read_prompt));
    rows.push_back(std::move(row));
  }
  if (options.generate > 0) {
    STOKER_TRY(BenchRow row, time(engine, options, "tg", options.generate, write_answer));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stoker::engine
