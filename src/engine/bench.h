#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/bench_case.h"
#include "engine/bench_energy.h"
#include "engine/bench_traffic.h"
#include "engine/engine.h"

namespace stoker::engine {

/// One line of a benchmark: tokens per second, of all sequences together, over the repetitions.
struct BenchRow {
  BenchCase test;
  double median = 0, min = 0, max = 0;
  int repetitions = 0;
  BenchTraffic traffic;
  double disk_bytes_per_token = 0;           ///< Of experts and layers that are streamed; the mean of the repetitions.
  std::optional<double> joules_per_token{};  ///< The median; nothing where energy cannot be read.
  /// With BenchOptions::read_loop, medians of the repetitions: bytes per second of the loop, and bytes_per_token times
  /// the repetition's rate as a part of it.
  std::optional<double> read_loop_rate{}, read_loop_share{};
};

struct BenchOptions {
  int repetitions = 5;
  const std::atomic<bool>* cancel = nullptr;
  /// After each forward pass of a timed repetition, all workers read weights with plain loads, in each order in turn.
  /// The neighbours on the host of a virtual machine change what its memory gives by the second; so both meet the same.
  bool read_loop = false;
  EnergyMeter energy{};                       ///< With no packages: no energy.
  std::function<void(uint64_t)> on_tokens{};  ///< After each forward pass: how many tokens it took.
};

/// Times tests on a loaded engine, whose `load` got the bench_needs of all of them. Sequences stay filled between
/// tests, so that tests of one depth pay for it once. The engine and the options outlive it.
class Bench {
 public:
  Bench(Engine& engine, const BenchOptions& options) : engine_(engine), options_(options), energy_(options.energy) {}

  /// Once to warm up, then `repetitions` times; the sequences are cut back to the depth in between. kCancelled.
  /// kCorrupt: a value that is not finite.
  Result<BenchRow> run(const BenchCase& test);
  /// Tokens of all forward passes that `run` will make.
  uint64_t tokens_of(const BenchCase& test) const;

  struct Loop {
    double seconds = 0, bytes = 0;
  };
  struct Timed {
    double seconds = 0;  ///< Of the forward passes.
    Loop loops[2];       ///< Of reads in each order.
  };

 private:
  Status fill(const BenchCase& test);
  Status copy_of_first(model::Sequence& sequence, int64_t length);
  Status take(const BenchCall& call);
  Result<Timed> timed(std::span<const BenchCall> calls, bool read_loop);
  Engine& engine_;
  const BenchOptions& options_;
  EnergyMeter energy_;
  std::vector<model::Sequence> sequences_;
  std::vector<model::Span> spans_;
  std::vector<int32_t> tokens_;  ///< By position, for all sequences; each starts elsewhere.
  int64_t shift_ = 0;            ///< And so does each repetition.
  int64_t loop_at_ = 0;          ///< Where the loop over the weights goes on.
  size_t n_loops_ = 0;
};

}  // namespace stoker::engine
