#include "engine/bench.h"

#include <ctime>

#include "base/cpu.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/bench_args.h"
#include "cli/bench_compare.h"
#include "cli/bench_figures.h"
#include "cli/options.h"

namespace stoker::cli {
namespace {

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The command line of each engine that is to be opened: models, then threads, then types of the cache.
std::vector<ModelArgs> settings_of(const BenchArgs& args) {
  std::vector<ModelArgs> all;
  for (const std::string& path : args.models) {
    for (const int threads : args.threads) {
      for (const std::string& kv_type : args.kv_types) {
        ModelArgs one = args.model;
        one.path = path;
        one.threads = threads;
        one.kv_type = kv_type;
        all.push_back(std::move(one));
      }
    }
  }
  return all;
}

/// Everything that can be said before the first model is read: an hour later would be late.
Status check(const BenchArgs& args, std::span<const engine::BenchCase> tests) {
  const auto bad = [](std::string text) { return Error{ErrorCode::kInvalidArgument, std::move(text)}; };
  if (tests.empty()) return bad("-p and -n are both 0: there is nothing to time");
  if (args.models.empty()) return bad("--model is required");
  const int64_t most = args.model.context > 0 ? args.model.context : engine::Engine::kMostContext;
  for (const engine::BenchCase& test : tests) {
    if (test.depth + test.n <= most) continue;
    return bad(str_cat(test.name(), " takes ", test.depth + test.n, " positions, the context has ", most));
  }
  return Ok{};
}

class Run {
 public:
  explicit Run(const BenchArgs& args)
      : args_(args), tests_(args.tests()), table_(args.format(), names(args), !args.compare.empty()) {}

  int operator()() {
    if (auto status = check(args_, tests_); !status) return fail(status.error());
    if (!args_.compare.empty()) {
      auto old = OldRun::read(args_.compare);
      if (!old) return fail(old.error());
      old_ = std::move(*old);
    }
    const std::vector<ModelArgs> settings = settings_of(args_);
    if (settings.size() > 1) {
      for (const ModelArgs& one : settings) {
        if (auto engine = open_engine(one); !engine) return fail(engine.error());
      }
    }
    Status status = Ok{};
    for (size_t i = 0; i < settings.size() && status && written_; ++i) status = time(settings[i]);
    if (status || n_rows_ > 0) write(table_.finish() + footer());
    if (!written_) return fail_output();
    return status ? kOk : fail(status.error());
  }

 private:
  static std::vector<std::string> names(const BenchArgs& args) {
    std::vector<std::string> names;
    for (const std::string& path : args.models) names.push_back(file_name(path));
    return names;
  }

  void write(const std::string& text) { written_ = written_ && put(text); }

  Status time(const ModelArgs& one) {
    STOKER_TRY(std::unique_ptr<engine::Engine> engine, open_engine(one));
    STOKER_TRY_STATUS(engine->check_logits());
    STOKER_TRY_STATUS(load(*engine, engine::bench_needs(tests_, one.batch)));
    watch_signals();
    engine::BenchOptions options{.repetitions = args_.repetitions,
                                 .cancel = &cancelled,
                                 .read_loop = args_.read_loop,
                                 .energy = engine::EnergyMeter::find()};
    engine::Bench bench(*engine, options);
    for (size_t i = 0; i < tests_.size() && written_; ++i) {
      STOKER_TRY(engine::BenchRow row, run(bench, options, i));
      ++n_rows_;
      BenchRecord record{.model = file_name(one.path),
                         .kv_type = one.kv_type,
                         .isa = std::string(isa_name(engine->model().plan().table->isa)),
                         .threads = engine->pool().size(),
                         .row = row};
      add_shares(record, engine->model().plan().table->isa);
      if (old_) record.ratio = old_->ratio(record);
      write(table_.add(record));
    }
    return Ok{};
  }

  /// The bar is gone when the row is written.
  Result<engine::BenchRow> run(engine::Bench& bench, engine::BenchOptions& options, size_t i) {
    Progress progress({.label = str_cat(tests_[i].name(), " (", i + 1, " of ", tests_.size(), ")"),
                       .total = bench.tokens_of(tests_[i]),
                       .is_bytes = false});
    options.on_tokens = [&](uint64_t n) { progress.add(n); };
    return bench.run(tests_[i]);
  }

  /// What this machine was measured to give, and what part of it the row reaches.
  void add_shares(BenchRecord& record, Isa isa) const {
    if (!machine_) return;
    const double read = machine_->figures.read_rate(record.threads);
    const double int8 = machine_->figures.int8_rate(isa, record.threads);
    const engine::BenchTraffic& traffic = record.row.traffic;
    if (read > 0) record.bandwidth_share = traffic.bytes_per_token * record.row.median / read;
    if (int8 > 0) record.int8_share = traffic.int8_ops_per_token * record.row.median / int8;
  }

  std::string footer() const {
    if (args_.format() != TableFormat::kText && args_.format() != TableFormat::kMarkdown) return "";
    if (!machine_) return "\nNo shares: `stoker bench --machine` measures what this machine can do, once.\n";
    return str_cat("\nShares are of what `stoker bench --machine` measured ",
                   age_text(std::time(nullptr) - machine_->measured_at), " ago",
                   machine_->quick ? ", roughly (--quick)" : "", ".\n");
  }

  const BenchArgs& args_;
  const std::optional<StoredFigures> machine_ = load_figures();
  std::optional<OldRun> old_;
  const std::vector<engine::BenchCase> tests_;
  BenchTable table_;
  size_t n_rows_ = 0;
  bool written_ = true;
};

int dispatch(const BenchArgs& args) {
  if (args.machine && args.kernels) return usage("--machine and --kernels are two commands");
  if (!args.disk.empty() && !args.machine) return usage("--disk goes with --machine");
  if (args.quick && !args.machine && !args.kernels) return usage("--quick goes with --machine or --kernels");
  if (!args.compare.empty() && (args.machine || args.kernels)) return usage("--compare goes with a --model");
  if (args.read_loop && (args.machine || args.kernels)) return usage("--read-loop goes with a --model");
  if (args.machine) return run_bench_machine(args);
  return args.kernels ? run_bench_kernels(args) : Run(args)();
}

}  // namespace

Command make_bench(CLI::App& root) {
  auto args = std::make_shared<BenchArgs>();
  CLI::App* app = root.add_subcommand("bench", "Tokens per second for reading a prompt (pp) and for generating (tg)");
  add_bench_options(*app, *args);
  return {app, [args, app] {
            args->kernels = app->count("--kernels") > 0;
            return dispatch(*args);
          }};
}

}  // namespace stoker::cli
