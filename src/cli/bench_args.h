// Options of `stoker bench`.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_table.h"
#include "cli/common.h"
#include "engine/bench.h"

namespace stoker::cli {

struct BenchArgs {
  ModelArgs model;  ///< Without path, threads and kv_type, which are lists here.
  std::vector<std::string> models;
  std::vector<std::string> kv_types{"f16"};
  std::vector<int> threads{0};
  std::vector<int64_t> prompts{512}, lengths{128}, depths{0}, streams{1};
  int repetitions = 5;
  bool read_loop = false;
  bool md = false, json = false, csv = false;
  std::string compare;  ///< Path of an older run's JSON.

  // In place of models:
  bool machine = false, quick = false;
  std::string disk;
  bool kernels = false;
  std::vector<std::string> kernel_types;

  TableFormat format() const;
  /// Every combination, deeper ones and wider ones later, as the lists say.
  std::vector<engine::BenchCase> tests() const;
};

void add_bench_options(CLI::App& app, BenchArgs& args);

/// Return the exit code.
int run_bench_machine(const BenchArgs& args);
int run_bench_kernels(const BenchArgs& args);

}  // namespace stoker::cli
