#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "base/log.h"
#include "base/memory_limit.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/options.h"
#include "cli/profile.h"
#include "cli/synth_file.h"
#include "engine/generate.h"

namespace stoker::cli {
namespace {

struct RunArgs {
  ModelArgs model;
  TextArgs text;
  int64_t n = -1;  ///< Below 0: up to the context's end.
  bool seed_given = false;
  engine::SamplerOptions sampler;
  bool ignore_eos = false, json = false, digest = false, profile = false, replay_reads = false;
  std::string profile_path, trace_path, load_path, save_path;
};

nlohmann::json to_json(const engine::Generated& g, const RunArgs& args) {
  return {{"text", g.text},
          {"tokens", g.tokens},
          {"prompt_tokens", g.prompt_tokens},
          {"restored_tokens", g.restored_tokens},
          {"generated_tokens", g.tokens.size()},
          {"decode_tokens", g.decode_tokens},
          {"prefill_seconds", g.prefill_seconds},
          {"decode_seconds", g.decode_seconds},
          {"stop", engine::stop_name(g.stop)},
          {"seed", args.sampler.seed}};
}

void print_statistics(const engine::Generated& g, const engine::Engine& engine) {
  const auto rate = [](int64_t n, double s) { return s > 0 ? static_cast<double>(n) / s : 0.0; };
  const std::string restored = g.restored_tokens > 0 ? str_cat(" (", g.restored_tokens, " restored)") : "";
  std::fprintf(stderr, "load %.2f s | prompt %lld tokens%s, %.1f t/s | answer %zu tokens, %.1f t/s | %s\n",
               engine.load_seconds(), static_cast<long long>(g.prompt_tokens), restored.c_str(),
               rate(g.prompt_tokens - g.restored_tokens, g.prefill_seconds), g.tokens.size(),
               rate(g.decode_tokens, g.decode_seconds), std::string(engine::stop_name(g.stop)).c_str());
}

/// With --verbose: what the memory limit was spent on, and what the system says of this process.
void print_memory(engine::Engine& engine) {
  if (!log_enabled(LogLevel::kInfo)) return;
  for (const Ledger::Line& line : engine.ledger().lines()) {
    std::fprintf(stderr, "memory: %-16s %s\n", line.name.c_str(), format_bytes(line.bytes).c_str());
  }
  std::fprintf(stderr, "memory: %-16s %s\n", "resident", format_bytes(resident_bytes()).c_str());
}

/// With --verbose: how the cache of streamed experts did, and the ring of streamed layers.
void print_stores(const engine::Engine& engine) {
  if (!log_enabled(LogLevel::kInfo)) return;
  const auto print = [](const char* name, const model::ExpertStore* store, auto* line) {
    if (!store) return;
    std::fprintf(stderr, "%s: %lld slots, %d reads in flight, %s\n", name, static_cast<long long>(store->n_slots()),
                 store->lanes(), store->mode().c_str());
    std::fprintf(stderr, "%s: %s\n", name, line(store->stats()).c_str());
  };
  print("experts", engine.experts(), expert_line);
  print("layers", engine.units(), unit_line);
}

/// The tokens of the state that the run goes on from, and those of the text, if there is one.
Result<std::vector<int32_t>> read_prompt(const RunArgs& args, const std::optional<model::StateFile>& from,
                                         engine::Engine& engine) {
  if (!from) return read_tokens(args.text, engine);
  std::vector<int32_t> prompt = from->tokens();
  if (args.text.given()) {
    STOKER_TRY(const std::vector<int32_t> more, read_tokens(args.text, engine, true));
    prompt.insert(prompt.end(), more.begin(), more.end());
  }
  if (const uint64_t bytes = 2 * prompt.capacity() * sizeof(int32_t); bytes >= kLargeList)
    engine.hold("state tokens", bytes);
  return prompt;
}

int run(RunArgs& args) {
  args.model.keep_routes = !args.trace_path.empty();
  auto engine = open_engine(args.model);
  if (!engine) return fail(engine.error());
  if (auto status = (*engine)->check_logits(); !status) return fail(status.error());
  warn_if_random((*engine)->file());
  std::optional<model::StateFile> from;
  if (!args.load_path.empty()) {
    auto state = engine::open_state(**engine, args.load_path);
    if (!state) return fail(state.error());
    from.emplace(std::move(*state));
  }
  auto prompt = read_prompt(args, from, **engine);
  if (!prompt) return fail(prompt.error());
  const auto n_prompt = static_cast<int64_t>(prompt->size());
  const int64_t n_to_read = n_prompt - (from ? from->length() : 0);
  const auto rows = std::clamp<int64_t>(n_to_read, 1, args.model.batch);
  auto context = (*engine)->context({.positions = n_prompt + std::max<int64_t>(args.n, 1), .max_rows = rows});
  if (!context) return fail(context.error());

  engine::Digest digest;
  engine::GenerateOptions options;
  options.context = *context;
  if (args.n >= 0) options.max_tokens = args.n;
  if (!args.seed_given) args.sampler.seed = std::random_device{}();
  options.sampler = args.sampler;
  options.ignore_end = args.ignore_eos;
  options.digest = args.digest ? &digest : nullptr;
  options.cancel = &cancelled;
  engine::Profiler profiler(**engine, args.replay_reads);
  if (args.profile || !args.profile_path.empty()) options.profiler = &profiler;
  std::optional<OutputFile> profile;  // Made now, so that a wrong path is known before the work and not after it.
  if (!args.profile_path.empty()) {
    auto file = OutputFile::create(args.profile_path);
    if (!file) return fail(file.error());
    profile.emplace(std::move(*file));
  }
  std::optional<OutputFile> state;
  if (!args.save_path.empty()) {
    auto file = OutputFile::create(args.save_path);
    if (!file) return fail(file.error());
    options.save_to = &state.emplace(std::move(*file));
  }
  if (from) options.from = &*from;
  std::optional<engine::TraceWriter> trace;
  if (!args.trace_path.empty()) {
    auto writer = engine::TraceWriter::create(args.trace_path, **engine);
    if (!writer) return fail(writer.error());
    options.trace = &trace.emplace(std::move(*writer));
  }
  auto positions = engine::positions_for(**engine, *prompt, options);
  if (!positions) return fail(positions.error());

  if (auto status = load(**engine, {.positions = *positions, .max_rows = rows, .prompt_rows = n_to_read}); !status)
    return fail(status.error());
  watch_signals();
  std::fprintf(stderr, "context %lld, seed %llu\n", static_cast<long long>(*context),
               static_cast<unsigned long long>(args.sampler.seed));

  bool written = true;
  if (!args.json) options.on_text = [&](std::string_view text) { return written = put(text); };
  auto reading =
      std::make_unique<Progress>(Progress::Options{.label = "reading", .total = prompt->size(), .is_bytes = false});
  options.on_prefill = [&, seen = int64_t{0}](int64_t done, int64_t all) mutable {
    reading->add(static_cast<uint64_t>(done - std::exchange(seen, done)));
    if (done == all) reading.reset();  // the bar goes before the first word comes
  };
  auto generated = engine::generate(**engine, *prompt, options);
  reading.reset();
  if (!generated) return fail(generated.error());
  if (args.json) {
    written = put(to_json(*generated, args).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else if (written && ::isatty(STDOUT_FILENO)) {
    written = put("\n");  // elsewhere the output is the text, byte for byte
  }
  if (!written) return fail_output();
  if (!args.json) print_statistics(*generated, **engine);
  print_memory(**engine);
  print_stores(**engine);
  if (args.profile) print_profile(profiler, **engine);
  if (profile) {
    if (auto status = save_profile(profiler, **engine, *profile); !status) return fail(status.error());
  }
  if (trace) {
    if (auto status = trace->commit(); !status) return fail(status.error());
  }
  if (args.digest) std::fprintf(stderr, "digest: %s\n", digest.hex().c_str());
  if (generated->not_saved) return fail(*generated->not_saved);
  return kOk;
}

}  // namespace

Command make_run(CLI::App& root) {
  auto args = std::make_shared<RunArgs>();
  CLI::App* app =
      root.add_subcommand("run", "Continue a text: the answer goes to stdout as it comes, everything else to stderr");
  add_model_options(*app, args->model);
  add_text_options(*app, args->text, true);
  add_integer<int64_t>(*app, "-n,--n-predict", args->n, 0, kMostTokens,
                       "Most tokens to generate; 0 only reads the prompt; default: up to the context's end");
  app->add_option("--temp", args->sampler.temperature, "Temperature; 0 is greedy")->capture_default_str();
  add_integer<int64_t>(*app, "--top-k", args->sampler.top_k, 0, INT32_MAX, "Keep the N best tokens; 0 is off")
      ->default_str("40");
  app->add_option("--top-p", args->sampler.top_p, "Keep the fewest tokens of this probability together; 1 is off")
      ->capture_default_str();
  app->add_option("--min-p", args->sampler.min_p,
                  "Keep tokens of at least this share of the best one's probability; 0 is off")
      ->capture_default_str();
  add_integer<uint64_t>(*app, "--seed", args->sampler.seed, 0, UINT64_MAX,
                        "Seed of the random numbers; default: a random one, printed");
  app->add_flag("--ignore-eos", args->ignore_eos, "Go on past end tokens, and keep them");
  app->add_flag("--json", args->json, "Print one JSON object instead of the text");
  app->add_flag("--digest", args->digest, "Print a digest of all logits that were sampled from, on stderr");
  app->add_flag("--profile", args->profile,
                "Print what prefill and decode took: time, faults, experts, the cache of experts; on stderr");
  app->add_option("--profile-json", args->profile_path,
                  "Write the same to a file as JSON, with how often each layer chose each expert")
      ->type_name("FILE");
  app->add_flag(
      "--replay-reads", args->replay_reads,
      "With a profile: read as many bytes of other experts after each call, without computing, and tell the time");
  app->add_option("--save-state", args->save_path,
                  "Write what the model has read and answered to a file, so that --load-state goes on from there")
      ->type_name("FILE");
  app->add_option("--load-state", args->load_path,
                  "Go on from what --save-state wrote; a text, if one is given, comes behind it")
      ->type_name("FILE");
  app->add_option("--trace", args->trace_path, "Write to a file which experts each token went to, for `stoker trace`")
      ->type_name("FILE");
  return {app, [args, app] {
            args->seed_given = app->count("--seed") > 0;
            return run(*args);
          }};
}

}  // namespace stoker::cli
