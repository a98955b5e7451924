#include "engine/bench.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/common.h"

namespace stoker::cli {
namespace {

struct Args {
  ModelArgs model;
  engine::BenchOptions bench;
  bool json = false;
};

int run(Args& args) {
  if (args.bench.prompt == 0 && args.bench.generate == 0)
    return usage("-p and -n are both 0: there is nothing to time");
  auto engine = open_engine(args.model);
  if (!engine) return fail(engine.error());
  const int64_t positions = std::max<int64_t>({args.bench.prompt, args.bench.generate, 1});
  if (auto status = load(**engine, {.positions = positions, .max_rows = std::min(args.model.batch, positions)});
      !status)
    return fail(status.error());
  watch_signals();
  args.bench.cancel = &cancelled;
  Result<std::vector<engine::BenchRow>> rows = Error{ErrorCode::kCancelled, ""};
  {
    const auto per_test = static_cast<uint64_t>(args.bench.repetitions) + 1;
    Progress progress({.label = "bench",
                       .total = per_test * ((args.bench.prompt > 0) + (args.bench.generate > 0)),
                       .is_bytes = false});
    args.bench.on_step = [&] { progress.add(1); };
    rows = engine::bench(**engine, args.bench);
  }
  if (!rows) return fail(rows.error());
  const int threads = (*engine)->pool().size();
  const std::string isa(isa_name((*engine)->model().plan().table->isa));
  std::string out;
  if (args.json) {
    auto json = nlohmann::json::array();
    for (const auto& row : *rows) {
      json.push_back({{"test", row.test},
                      {"tps_median", row.median},
                      {"tps_min", row.min},
                      {"tps_max", row.max},
                      {"repetitions", row.repetitions},
                      {"threads", threads},
                      {"isa", isa}});
    }
    out = json.dump(1) + "\n";
  } else {
    for (const auto& row : *rows) {
      char line[160];
      std::snprintf(line, sizeof line, "%-8s %9.2f t/s  (%.2f to %.2f, %d runs, %d threads, %s)\n", row.test.c_str(),
                    row.median, row.min, row.max, row.repetitions, threads, isa.c_str());
      out += line;
    }
  }
  return put(out) ? kOk : fail_output();
}

}  // namespace

Command make_bench(CLI::App& root) {
  auto args = std::make_shared<Args>();
  CLI::App* app = root.add_subcommand("bench", "Tokens per second for reading a prompt (pp) and for generating (tg)");
  add_model_options(*app, args->model);
  add_integer<int64_t>(*app, "-p,--n-prompt", args->bench.prompt, 0, engine::Engine::kMostContext,
                       "Prompt tokens; 0: none")
      ->default_str("512");
  add_integer<int64_t>(*app, "-n,--n-gen", args->bench.generate, 0, engine::Engine::kMostContext,
                       "Tokens to generate; 0: none")
      ->default_str("128");
  add_integer(*app, "-r,--repetitions", args->bench.repetitions, 1, 1000000,
              "Timed runs of each test, after one to warm up")
      ->default_str("5");
  app->add_flag("--json", args->json, "Print an array of rows");
  return {app, [args] { return run(*args); }};
}

}  // namespace stoker::cli
