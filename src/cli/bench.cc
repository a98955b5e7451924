#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/common.h"
#include "engine/bench.h"

namespace stoker::cli {
namespace {

struct Args {
  ModelArgs model;
  engine::BenchOptions bench;
  bool json = false;
};

int run(Args& args) {
  if (args.bench.repetitions < 1) return usage(str_cat("-r is ", args.bench.repetitions, ", wanted 1 or more"));
  if (args.bench.prompt < 0 || args.bench.generate < 0) return usage("-p and -n take 0 or more tokens");
  auto engine = open_engine(args.model);
  if (!engine) return fail(engine.error());
  const int64_t positions = std::max<int64_t>({args.bench.prompt, args.bench.generate, 1});
  if (auto status = (*engine)->load({.positions = positions, .max_rows = std::min(args.model.batch, positions)}); !status) return fail(status.error());
  watch_signals();
  args.bench.cancel = &cancelled;
  Result<std::vector<engine::BenchRow>> rows = Error{ErrorCode::kCancelled, ""};
  {
    const auto per_test = static_cast<uint64_t>(args.bench.repetitions) + 1;
    Progress progress({.label = "bench", .total = per_test * ((args.bench.prompt > 0) + (args.bench.generate > 0)), .is_bytes = false});
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
      json.push_back({{"test", row.test}, {"tps_median", row.median}, {"tps_min", row.min}, {"tps_max", row.max},
                      {"repetitions", row.repetitions}, {"threads", threads}, {"isa", isa}});
    }
    out = json.dump(1) + "\n";
  } else {
    for (const auto& row : *rows) {
      char line[160];
      std::snprintf(line, sizeof line, "%-8s %9.2f t/s  (%.2f to %.2f, %d runs, %d threads, %s)\n", row.test.c_str(), row.median, row.min, row.max,
                    row.repetitions, threads, isa.c_str());
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
  app->add_option("-p,--n-prompt", args->bench.prompt, "Prompt tokens; 0: none")->capture_default_str();
  app->add_option("-n,--n-gen", args->bench.generate, "Tokens to generate; 0: none")->capture_default_str();
  app->add_option("-r,--repetitions", args->bench.repetitions, "Timed runs of each test, after one to warm up")->capture_default_str();
  app->add_flag("--json", args->json, "Print an array of rows");
  return {app, [args, app] {
            args->model.context_given = app->count("--ctx") > 0;
            return run(*args);
          }};
}

}  // namespace stoker::cli
