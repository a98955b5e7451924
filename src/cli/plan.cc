// stoker plan
#include <algorithm>
#include <memory>
#include <utility>

#include "base/str_cat.h"
#include "cli/options.h"
#include "cli/plan_figures.h"
#include "cli/plan_print.h"
#include "cli/synth_file.h"
#include "engine/plan_report.h"
#include "engine/synth.h"

namespace stoker::cli {
namespace {

struct PlanArgs {
  ModelArgs model;
  int64_t parallel = 1;
  bool no_measure = false, json = false;
};

constexpr int64_t kMostParallel = 1024;

/// A model of which nothing but the header is read, or made.
struct Opened {
  ModelHeader header{};  ///< Of a shape; the engine's file points into it.
  std::string file{};    ///< With the weights; empty: there is none.
  std::unique_ptr<engine::Engine> engine{};
};

Result<Opened> open_shape(engine::EngineOptions options, engine::SynthOptions shape) {
  Opened opened;
  STOKER_TRY(const engine::Synth synth, engine::Synth::plan(std::move(shape)));
  if (auto path = synth_path(synth); path && exists(*path)) opened.file = *path;
  options.path = str_cat("synth:", synth.name());
  STOKER_TRY(opened.header, synth_header(synth, options.path));
  STOKER_TRY(opened.engine, engine::Engine::open(std::move(options), std::move(*opened.header.file)));
  return opened;
}

Result<Opened> open(const ModelArgs& args) {
  STOKER_TRY(engine::EngineOptions options, engine_options(args));
  const auto shape = synth_options(args.path);
  if (shape && !exists(args.path)) return open_shape(std::move(options), *shape);
  options.path = args.path;
  Opened opened{.file = args.path};
  auto engine = engine::Engine::open(std::move(options));
  if (!engine && engine.error().code == ErrorCode::kNotFound && !exists(args.path)) {
    return Error{ErrorCode::kNotFound,
                 str_cat(engine.error().message, ", and no shape of `stoker synth --list` has this name")};
  }
  if (!engine) return engine.error();
  opened.engine = std::move(*engine);
  return opened;
}

int run(const PlanArgs& args) {
  auto opened = open(args.model);
  if (!opened) return fail(opened.error());
  engine::Engine& engine = *opened->engine;
  const auto run = engine::PlanRun::of(engine, args.parallel);
  if (!run) return fail(run.error());
  if (auto status = engine.fits(run->needs); !status) return fail(status.error());
  watch_signals();
  const auto figures = plan_figures(engine, {.measure = !args.no_measure, .file = opened->file});
  if (!figures) return fail(figures.error());
  const auto report = engine::plan_report(engine, *run, figures->rates);
  if (!report) return fail(report.error());
  const auto limits = engine::plan_limits(engine, *run, figures->rates);
  const PlanText text{engine, *run, *report, limits, *figures, args.model.kv_type, engine.pool().size()};
  return put(args.json ? plan_json(text) : plan_text(text)) ? kOk : fail_output();
}

}  // namespace

Command make_plan(CLI::App& root) {
  auto args = std::make_shared<PlanArgs>();
  CLI::App* app = root.add_subcommand(
      "plan", "Say what a model will take and how fast it will be on this machine, before it is fetched or loaded");
  app->add_option("model", args->model.path,
                  "GGUF file, or any shard of a split one, or SHAPE[:TYPE] of `stoker synth --list`")
      ->required()
      ->type_name("FILE|SHAPE");
  add_engine_options(*app, args->model);
  add_integer<int64_t>(*app, "--parallel", args->parallel, 1, kMostParallel,
                       "Sequences decoded together, each with a context of its own")
      ->default_str("1");
  app->add_flag("--no-measure", args->no_measure, "Take what was measured before, and guess what was not");
  app->add_flag("--json", args->json, "Print one JSON object");
  return {app, [args] { return run(*args); }};
}

}  // namespace stoker::cli
