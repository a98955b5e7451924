#include "engine/bench_case.h"

#include <algorithm>

#include "base/checked.h"
#include "base/str_cat.h"

namespace stoker::engine {
namespace {

std::vector<BenchCall> prompt_calls(const BenchCase& test, int64_t batch) {
  std::vector<BenchCall> calls;
  int64_t room = 0;
  for (int64_t stream = 0; stream < test.streams; ++stream) {
    for (int64_t at = 0; at < test.n;) {
      if (room == 0) {
        calls.emplace_back();
        room = batch;
      }
      const int64_t rows = std::min(room, test.n - at);
      calls.back().push_back({.stream = stream, .begin = at, .end = at + rows, .wants_logits = at + rows == test.n});
      at += rows;
      room -= rows;
    }
  }
  return calls;
}

std::vector<BenchCall> generation_calls(const BenchCase& test) {
  std::vector<BenchCall> calls(static_cast<size_t>(test.n));
  for (int64_t i = 0; i < test.n; ++i) {
    for (int64_t stream = 0; stream < test.streams; ++stream) {
      calls[static_cast<size_t>(i)].push_back({.stream = stream, .begin = i, .end = i + 1, .wants_logits = true});
    }
  }
  return calls;
}

}  // namespace

std::string BenchCase::name() const {
  std::string name = str_cat(generates ? "tg" : "pp", n);
  if (depth > 0) name += str_cat("@d", depth);
  if (streams > 1) name += str_cat(" x ", streams);
  return name;
}

std::vector<BenchCall> bench_calls(const BenchCase& test, int64_t batch) {
  return test.generates ? generation_calls(test) : prompt_calls(test, batch);
}

Engine::Needs bench_needs(std::span<const BenchCase> tests, int64_t batch) {
  Engine::Needs needs{.positions = 1, .max_rows = 1};
  for (const BenchCase& test : tests) {
    const int64_t pages = round_up<int64_t>(test.depth + test.n, kernels::kTilePositions);
    needs.positions = std::max(needs.positions, test.streams * pages);
    needs.n_sequences = std::max(needs.n_sequences, test.streams);
    needs.n_checkpoints = needs.n_sequences;  // where a test begins, to come back to
    const int64_t rows = test.generates ? test.streams : std::min(batch, test.tokens());
    needs.max_rows = std::max({needs.max_rows, rows, std::min(batch, test.depth)});
    needs.max_logits = std::max(needs.max_logits, test.generates ? test.streams : std::min(batch, test.streams));
  }
  return needs;
}

}  // namespace stoker::engine
