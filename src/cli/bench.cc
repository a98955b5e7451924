#include "engine/bench.h"

#include "base/cpu.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/bench_args.h"
#include "cli/common.h"

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
  explicit Run(const BenchArgs& args) : args_(args), tests_(args.tests()), table_(args.format(), names(args)) {}

  int operator()() {
    if (auto status = check(args_, tests_); !status) return fail(status.error());
    const std::vector<ModelArgs> settings = settings_of(args_);
    if (settings.size() > 1) {
      for (const ModelArgs& one : settings) {
        if (auto engine = open_engine(one); !engine) return fail(engine.error());
      }
    }
    Status status = Ok{};
    for (size_t i = 0; i < settings.size() && status && written_; ++i) status = time(settings[i]);
    if (status || n_rows_ > 0) write(table_.finish());
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
    STOKER_TRY_STATUS(load(*engine, engine::bench_needs(tests_, one.batch)));
    watch_signals();
    engine::BenchOptions options{.repetitions = args_.repetitions, .cancel = &cancelled};
    engine::Bench bench(*engine, options);
    for (size_t i = 0; i < tests_.size() && written_; ++i) {
      STOKER_TRY(engine::BenchRow row, run(bench, options, i));
      ++n_rows_;
      write(table_.add({.model = file_name(one.path),
                        .kv_type = one.kv_type,
                        .isa = std::string(isa_name(engine->model().plan().table->isa)),
                        .threads = engine->pool().size(),
                        .row = std::move(row)}));
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

  const BenchArgs& args_;
  const std::vector<engine::BenchCase> tests_;
  BenchTable table_;
  size_t n_rows_ = 0;
  bool written_ = true;
};

}  // namespace

Command make_bench(CLI::App& root) {
  auto args = std::make_shared<BenchArgs>();
  CLI::App* app = root.add_subcommand("bench", "Tokens per second for reading a prompt (pp) and for generating (tg)");
  add_bench_options(*app, *args);
  return {app, [args] { return Run(*args)(); }};
}

}  // namespace stoker::cli
